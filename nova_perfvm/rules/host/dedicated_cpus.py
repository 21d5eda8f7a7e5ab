# SPDX-License-Identifier: Apache-2.0
"""A VM that owns CPUs is on a host with dedicated CPUs, in NUMA nodes.

For a class with ``exclusive: host`` the host has no shared CPUs beside them.
"""

from typing import Final

from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import HostCase, HostRule, Refusal
from nova_perfvm.rules.slots import host_mode

NO_NUMA: Final = Refusal(
    "host.no_numa_topology",
    lambda _: "the compute reports no NUMA nodes",
    meaning="the compute reports no NUMA nodes",
    advice="none: it is no libvirt/KVM host",
)
NO_DEDICATED_CPUS: Final = Refusal(
    "host.no_dedicated_cpus",
    lambda _: "no CPU of the host may be pinned: [compute]cpu_dedicated_set is not set",
    meaning="only ``cpu_shared_set`` is configured",
    advice="none: it is a host of general VMs",
)
MODE_MIXED: Final = Refusal(
    "host.mode_mixed",
    lambda _: (
        "the host has both shared and dedicated CPUs, and the class wants hosts for "
        "itself (exclusive: host)"
    ),
    meaning="shared and dedicated CPUs, under ``exclusive: host``",
    advice="divide by hosts, or use ``exclusive: cell``",
)


def _check(case: HostCase[VMClass]) -> Reason | None:
    if not case.host.cells:
        return NO_NUMA.because()
    mode = host_mode(case.host)
    if mode in {"shared", "none"}:
        return NO_DEDICATED_CPUS.because()
    if case.vm_class.exclusive == "host" and mode == "mixed":
        return MODE_MIXED.because()
    return None


RULE: Final = HostRule(
    100, _check, (NO_NUMA, NO_DEDICATED_CPUS, MODE_MIXED), vms=("pinned",)
)
