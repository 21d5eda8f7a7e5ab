# SPDX-License-Identifier: Apache-2.0
"""A VM is on a host with CPUs of its kind: in NUMA nodes, if it owns them.

For a class with ``exclusive: host`` the host has no shared CPUs beside them.
"""

from typing import Final

from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import HostCase, HostRule, Refusal
from nova_perfvm.rules.slots import host_mode

NO_SHARED_CPUS: Final = Refusal(
    "host.no_shared_cpus",
    meaning="no CPU may be shared: only ``cpu_dedicated_set`` is configured",
    advice="none: it is a host of pinned VMs",
)
NO_NUMA: Final = Refusal(
    "host.no_numa_topology",
    meaning="the compute reports no NUMA nodes",
    advice="none: it is no libvirt/KVM host",
)
NO_DEDICATED_CPUS: Final = Refusal(
    "host.no_dedicated_cpus",
    meaning="no CPU may be pinned: only ``cpu_shared_set`` is configured",
    advice="none: it is a host of general VMs",
)
MODE_MIXED: Final = Refusal(
    "host.mode_mixed",
    meaning="shared and dedicated CPUs, under ``exclusive: host``",
    advice="divide by hosts, or use ``exclusive: cell``",
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
