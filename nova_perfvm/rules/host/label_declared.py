# SPDX-License-Identifier: Apache-2.0
"""The classes that aggregates reserve a host for are the policy's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.rules.rule import HostRule, Refusal

if TYPE_CHECKING:
    from nova_perfvm.facts import HostFacts, Reason, RequestFacts
    from nova_perfvm.policy import Policy, VMClass


LABEL_UNKNOWN: Final = Refusal(
    "host.label_unknown",
    lambda d: (
        f"an aggregate of the host has perfvm:class={', '.join(d['found'])}, which is "
        f"not declared; the policy has {', '.join(d['expected'])}"
    ),
    standing=True,
)


def _check(
    policy: Policy, _vm_class: VMClass | None, _request: RequestFacts, host: HostFacts
) -> Reason | None:
    unknown = host.labels - policy.by_name.keys()
    if unknown:
        return LABEL_UNKNOWN.because(
            found=sorted(unknown), expected=sorted(policy.by_name)
        )
    return None


RULE: Final = HostRule(40, _check, (LABEL_UNKNOWN,), hosts="labelled")
