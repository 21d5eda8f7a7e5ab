# SPDX-License-Identifier: Apache-2.0
"""A VM that shares CPUs is on a host with shared CPUs."""

from typing import Final

from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import HostCase, HostRule, Refusal

NO_SHARED_CPUS: Final = Refusal(
    "host.no_shared_cpus",
    lambda _: "no CPU of the host may be shared: [compute]cpu_shared_set is not set",
    meaning="only ``cpu_dedicated_set`` is configured",
    advice="none: it is a host of pinned VMs",
)


def _check(case: HostCase[VMClass | None]) -> Reason | None:
    if case.host.cells and not any(cell.cpuset for cell in case.host.cells):
        return NO_SHARED_CPUS.because()
    return None


RULE: Final = HostRule(90, _check, (NO_SHARED_CPUS,), vms=("shared",))
