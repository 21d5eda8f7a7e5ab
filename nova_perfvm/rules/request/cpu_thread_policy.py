# SPDX-License-Identifier: Apache-2.0
"""A pinned VM has its class's thread policy: another one takes other CPUs."""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.request.cpu_policy import has_cpu_policy
from nova_perfvm.rules.rule import Refusal, RequestCase, RequestRule

CPU_THREAD_POLICY: Final = Refusal(
    "flavor.cpu_thread_policy",
    lambda d: (
        f"the request's CPU thread policy is {d['found']}, its class's {d['expected']}"
    ),
    meaning="another thread policy than the class's",
    advice="use a generated flavor; look for ``hw_cpu_thread_policy`` on the image",
    audit=findings.NOT_OF_CLASS,
)


def _check(case: RequestCase[VMClass]) -> Iterator[Reason]:
    if not case.vm_class.pinned or not has_cpu_policy(case):
        return
    wanted = case.vm_class.cpu_thread_policy or "prefer"
    found = {cell.cpu_thread_policy or "prefer" for cell in case.request.cells}
    if found != {wanted}:
        yield CPU_THREAD_POLICY.because(found=", ".join(sorted(found)), expected=wanted)


RULE: Final = RequestRule(50, _check, (CPU_THREAD_POLICY,))
