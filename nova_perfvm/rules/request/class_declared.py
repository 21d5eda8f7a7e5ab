# SPDX-License-Identifier: Apache-2.0
"""The class that a flavor names is one of the policy's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.rules.rule import Refusal, RequestRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nova_perfvm.facts import Reason, RequestFacts
    from nova_perfvm.policy import Policy, VMClass

CLASS_UNKNOWN: Final = Refusal(
    "flavor.class_unknown",
    lambda d: (
        f"perfvm:class={d['found']} is not declared; the policy has "
        f"{', '.join(d['expected'])}"
    ),
    audit="audit.class_unknown",
)


def _check(
    policy: Policy, _vm_class: VMClass | None, request: RequestFacts
) -> Iterator[Reason]:
    name = request.class_name
    if name is not None and name not in policy.by_name:
        yield CLASS_UNKNOWN.because(found=name, expected=sorted(policy.by_name))


RULE: Final = RequestRule(10, _check, (CLASS_UNKNOWN,), claimed=False)
