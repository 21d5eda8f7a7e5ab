# SPDX-License-Identifier: Apache-2.0
"""A VM of a pinned class runs only on hosts that the policy manages.

Unmanaged hosts take any VM, so an exclusive class could not keep its promise there.
"""

from typing import Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import HostCase, HostRule, Refusal

NOT_MANAGED: Final = Refusal(
    "host.not_managed",
    meaning="``managed_hosts: labelled``, and no aggregate labels the host",
    advice="add the host to an aggregate with ``perfvm:class``",
    audit=findings.HOST_NOT_MANAGED,
    remedy="migrate",
)


def _check(_case: HostCase[VMClass | None]) -> Reason | None:
    return NOT_MANAGED.because()


RULE: Final = HostRule(
    20, _check, (NOT_MANAGED,), hosts=("unmanaged",), vms=("pinned",)
)
