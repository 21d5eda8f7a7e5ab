# SPDX-License-Identifier: Apache-2.0
"""A pinned VM has its class's thread policy: another one takes other CPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.rules.request.cpu_policy import has_cpu_policy
from nova_perfvm.rules.rule import Refusal, RequestRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nova_perfvm.facts import Reason, RequestFacts
    from nova_perfvm.policy import Policy, VMClass

CPU_THREAD_POLICY: Final = Refusal(
    "flavor.cpu_thread_policy",
    lambda d: (
        f"the request's CPU thread policy is {d['found']}, its class's {d['expected']}"
    ),
    audit="audit.not_of_class",
)


def _check(
    _policy: Policy, vm_class: VMClass, request: RequestFacts
) -> Iterator[Reason]:
    if not vm_class.pinned or not has_cpu_policy(vm_class, request):
        return
    wanted = vm_class.cpu_thread_policy or "prefer"
    found = {cell.cpu_thread_policy or "prefer" for cell in request.cells}
    if found != {wanted}:
        yield CPU_THREAD_POLICY.because(found=", ".join(sorted(found)), expected=wanted)


RULE: Final = RequestRule(50, _check, (CPU_THREAD_POLICY,))
