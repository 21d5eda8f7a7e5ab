# SPDX-License-Identifier: Apache-2.0
"""``perfvm help``."""

from __future__ import annotations

import argparse

from nova_perfvm.osc.base import PerfVMCommand
from nova_perfvm.osc.commands import listing


class ShowHelp(PerfVMCommand):
    """List all perfvm commands with their purpose, everyday commands first."""

    def take_action(self, _parsed_args: argparse.Namespace) -> None:
        self.write("openstack perfvm COMMAND (--help has its options)\n")
        self.write(listing(self.app, "perfvm "))
