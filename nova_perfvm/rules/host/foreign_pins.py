# SPDX-License-Identifier: Apache-2.0
"""VMs of a class with ``exclusive: host`` avoid hosts with pins of other VMs."""

from typing import Final

from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import HostCase, HostRule, Refusal
from nova_perfvm.rules.slots import is_foreign, no_sum

FOREIGN_PINS: Final = Refusal(
    "host.foreign_pins",
    words=lambda d: (
        f"NUMA node {d['cell']} has {d['pinned']} pinned CPUs, {no_sum(d['sizes'])}: "
        "VMs that are not of this class run there"
    ),
    meaning=(
        "the number of pinned CPUs is no multiple of the class's vCPUs, or no sum of "
        "its sizes"
    ),
    advice=(
        "migrate pinned VMs whose flavors name no class; declare former sizes of the "
        "class in ``former_vcpus``"
    ),
)


def _check(case: HostCase[VMClass]) -> Reason | None:
    if case.vm_class.exclusive != "host":
        return None
    for cell in case.host.cells:
        pins = len(cell.pinned_cpus)
        if pins and is_foreign(case.vm_class, pins):
            return FOREIGN_PINS.because(
                cell=cell.id, pinned=pins, sizes=sorted(case.vm_class.cell_sizes)
            )
    return None


RULE: Final = HostRule(110, _check, (FOREIGN_PINS,), vms=("pinned",))
