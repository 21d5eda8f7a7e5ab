# SPDX-License-Identifier: Apache-2.0
"""A VM that shares CPUs is on a host that has such."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.rules.rule import HostRule, Refusal

if TYPE_CHECKING:
    from nova_perfvm.facts import HostFacts, Reason, RequestFacts
    from nova_perfvm.policy import Policy, VMClass


NO_SHARED_CPUS: Final = Refusal(
    "host.no_shared_cpus",
    lambda _: "no CPU of the host may be shared: [compute]cpu_shared_set is not set",
    standing=True,
)


def _check(
    _policy: Policy, _vm_class: VMClass | None, _request: RequestFacts, host: HostFacts
) -> Reason | None:
    if host.cells and not any(cell.cpuset for cell in host.cells):
        return NO_SHARED_CPUS.because()
    return None


RULE: Final = HostRule(90, _check, (NO_SHARED_CPUS,), vms=("shared",))
