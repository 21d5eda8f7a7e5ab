# SPDX-License-Identifier: Apache-2.0
"""The policy declares the class that the flavor names."""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import Refusal, RequestCase, RequestRule

CLASS_UNKNOWN: Final = Refusal(
    "flavor.class_unknown",
    words=lambda d: (
        f"perfvm:class={d['found']} is not declared; the policy declares "
        f"{', '.join(d['expected'])}"
    ),
    meaning="``perfvm:class`` names a class that the policy does not declare",
    advice="correct the flavor, or declare the class",
    audit=findings.CLASS_UNKNOWN,
)


def _check(case: RequestCase[VMClass | None]) -> Iterator[Reason]:
    name = case.request.class_name
    if name is not None and name not in case.policy.by_name:
        yield CLASS_UNKNOWN.because(found=name, expected=sorted(case.policy.by_name))


RULE: Final = RequestRule(10, _check, (CLASS_UNKNOWN,), claimed=False)
