# SPDX-License-Identifier: Apache-2.0
"""``tempest config``."""

from __future__ import annotations

import argparse

from nova_perfvm.generate.tempest import tempest_conf
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import PolicyCommand


class ConfigTempest(PolicyCommand):
    """Print the sections of tempest.conf that describe the policy."""

    arguments = (
        opt.vm_class("the pinned class to test (default: the policy's only one)"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.write(tempest_conf(self.policy(parsed_args), parsed_args.class_name))
