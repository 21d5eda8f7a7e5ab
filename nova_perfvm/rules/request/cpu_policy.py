# SPDX-License-Identifier: Apache-2.0
"""A VM owns CPUs if its class says so, and else shares them."""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason, RequestFacts
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import Refusal, RequestCase, RequestRule

CPU_POLICY: Final = Refusal(
    "flavor.cpu_policy",
    lambda d: f"the request's CPU policy is {d['found']}, its class's {d['expected']}",
    meaning="pinned where the class is shared, or the reverse",
    advice="use a generated flavor; look for ``hw_cpu_policy`` on the image",
    audit=findings.NOT_OF_CLASS,
)


def has_cpu_policy(case: RequestCase[VMClass]) -> bool:
    """Return whether a request is pinned as its class wants.

    The rules about how its cells are made ask it first.
    """
    if case.vm_class.pinned:
        return _is_dedicated(case.request)
    return not case.request.pinned


def _is_dedicated(request: RequestFacts) -> bool:
    return bool(request.cells) and not any(cell.vcpus for cell in request.cells)


def _check(case: RequestCase[VMClass]) -> Iterator[Reason]:
    if not has_cpu_policy(case):
        found = "mixed" if case.request.pinned else "shared"
        if _is_dedicated(case.request):
            found = "dedicated"
        yield CPU_POLICY.because(found=found, expected=case.vm_class.cpu_policy)


RULE: Final = RequestRule(30, _check, (CPU_POLICY,))
