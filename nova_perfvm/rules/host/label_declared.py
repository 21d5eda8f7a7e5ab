# SPDX-License-Identifier: Apache-2.0
"""The policy declares the classes that aggregates reserve a host for."""

from typing import Final

from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import HostCase, HostRule, Refusal

LABEL_UNKNOWN: Final = Refusal(
    "host.label_unknown",
    lambda d: (
        f"an aggregate of the host has perfvm:class={', '.join(d['found'])}, which is "
        f"not declared; the policy has {', '.join(d['expected'])}"
    ),
    meaning="an aggregate's ``perfvm:class`` is not declared",
    advice="correct the aggregate's metadata",
)


def _check(case: HostCase[VMClass | None]) -> Reason | None:
    unknown = case.host.labels - case.policy.by_name.keys()
    if unknown:
        return LABEL_UNKNOWN.because(
            found=sorted(unknown), expected=sorted(case.policy.by_name)
        )
    return None


RULE: Final = HostRule(40, _check, (LABEL_UNKNOWN,), hosts="labelled")
