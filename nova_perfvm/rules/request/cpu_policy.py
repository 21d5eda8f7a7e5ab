# SPDX-License-Identifier: Apache-2.0
"""A VM owns CPUs if its class says so, and else shares them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.rules.rule import Refusal, RequestRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nova_perfvm.facts import Reason, RequestFacts
    from nova_perfvm.policy import Policy, VMClass

CPU_POLICY: Final = Refusal(
    "flavor.cpu_policy",
    lambda d: f"the request's CPU policy is {d['found']}, its class's {d['expected']}",
    audit="audit.not_of_class",
)


def has_cpu_policy(vm_class: VMClass, request: RequestFacts) -> bool:
    """Return whether a request is pinned as its class wants.

    The rules about how its cells are made ask it first.
    """
    return _is_dedicated(request) if vm_class.pinned else not request.pinned


def _is_dedicated(request: RequestFacts) -> bool:
    return bool(request.cells) and not any(cell.vcpus for cell in request.cells)


def _check(
    _policy: Policy, vm_class: VMClass, request: RequestFacts
) -> Iterator[Reason]:
    if not has_cpu_policy(vm_class, request):
        found = "mixed" if request.pinned else "shared"
        if _is_dedicated(request):
            found = "dedicated"
        yield CPU_POLICY.because(found=found, expected=vm_class.cpu_policy)


RULE: Final = RequestRule(30, _check, (CPU_POLICY,))
