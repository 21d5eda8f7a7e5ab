# SPDX-License-Identifier: Apache-2.0
"""A host has dedicated CPUs and NUMA nodes for pinned VMs, shared CPUs for others.

A host for a class with ``exclusive: host`` has no shared CPUs beside dedicated ones.
"""

from typing import Final

from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import HostCase, HostRule, Refusal
from nova_perfvm.rules.slots import host_mode

NO_SHARED_CPUS: Final = Refusal(
    "host.no_shared_cpus",
    meaning="the host has no shared CPUs: only ``cpu_dedicated_set`` is configured",
    advice="none: the host serves pinned VMs",
)
NO_NUMA: Final = Refusal(
    "host.no_numa_topology",
    meaning="nova-compute reports no NUMA nodes",
    advice="none: the host does not run libvirt/KVM",
)
NO_DEDICATED_CPUS: Final = Refusal(
    "host.no_dedicated_cpus",
    meaning="the host has no dedicated CPUs: only ``cpu_shared_set`` is configured",
    advice="none: the host serves general VMs",
)
MODE_MIXED: Final = Refusal(
    "host.mode_mixed",
    meaning="the host has shared and dedicated CPUs, and the class ``exclusive: host``",
    advice="configure one of the two cpu sets on each host, or use ``exclusive: cell``",
)


def _check(case: HostCase[VMClass]) -> Reason | None:
    mode = host_mode(case.host)
    if not case.vm_class.pinned:
        only_pinned = case.host.cells and mode in {"dedicated", "none"}
        return NO_SHARED_CPUS.because() if only_pinned else None
    if not case.host.cells:
        return NO_NUMA.because()
    if mode in {"shared", "none"}:
        return NO_DEDICATED_CPUS.because()
    if case.vm_class.exclusive == "host" and mode == "mixed":
        return MODE_MIXED.because()
    return None


RULE: Final = HostRule(
    100,
    _check,
    (NO_NUMA, NO_DEDICATED_CPUS, MODE_MIXED, NO_SHARED_CPUS),
    vms=("pinned", "shared"),
)
