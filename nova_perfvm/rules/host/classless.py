# SPDX-License-Identifier: Apache-2.0
"""A pinned VM of no class avoids managed hosts with slots, as it would strand one."""

from typing import Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.printable import number_of
from nova_perfvm.rules.rule import HostCase, HostRule, Refusal
from nova_perfvm.rules.slots import host_slots

CLASSLESS_PINNED: Final = Refusal(
    "host.classless_pinned",
    words=lambda d: (
        f"a pinned VM of no class would strand a slot: the host has "
        f"{number_of(d['slots'], 'slot')} for class {d['class']}"
    ),
    meaning="a pinned VM of no class would strand a slot",
    advice=(
        "give the flavor a class, or keep the host out of the policy (``managed_hosts: "
        "labelled``)"
    ),
    audit=findings.CLASSLESS_PINNED,
)


def _check(case: HostCase[VMClass | None]) -> Reason | None:
    if not case.request.pinned:
        return None
    for vm_class in case.policy.pinned_classes:
        slots = host_slots(vm_class, case.host.cells)
        if slots:
            return CLASSLESS_PINNED.because(**{"class": vm_class.name, "slots": slots})
    return None


RULE: Final = HostRule(80, _check, (CLASSLESS_PINNED,), vms=("classless",))
