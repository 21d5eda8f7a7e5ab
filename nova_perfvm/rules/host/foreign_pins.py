# SPDX-License-Identifier: Apache-2.0
"""A class that wants hosts for itself keeps off pins that are none of its VMs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.rules.rule import HostRule, Refusal
from nova_perfvm.rules.slots import is_foreign, no_sum

if TYPE_CHECKING:
    from nova_perfvm.facts import HostFacts, Reason, RequestFacts
    from nova_perfvm.policy import Policy, VMClass


FOREIGN_PINS: Final = Refusal(
    "host.foreign_pins",
    lambda d: (
        f"cell {d['cell']} has {d['pinned']} pinned CPUs, {no_sum(d['sizes'])}: VMs "
        "that are not of this class run there"
    ),
)


def _check(
    _policy: Policy, vm_class: VMClass, _request: RequestFacts, host: HostFacts
) -> Reason | None:
    if vm_class.exclusive != "host":
        return None
    for cell in host.cells:
        pins = len(cell.pinned_cpus)
        if pins and is_foreign(vm_class, pins):
            return FOREIGN_PINS.because(
                cell=cell.id, pinned=pins, sizes=sorted(vm_class.cell_sizes)
            )
    return None


RULE: Final = HostRule(110, _check, (FOREIGN_PINS,), vms=("pinned",))
