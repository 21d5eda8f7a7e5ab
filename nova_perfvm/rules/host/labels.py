# SPDX-License-Identifier: Apache-2.0
"""A host's labels name declared classes, and no exclusive beside another pinned class.

The number of pinned CPUs does not tell the VMs of two pinned classes apart.
"""

from typing import Final

from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import HostCase, HostRule, Refusal

LABEL_UNKNOWN: Final = Refusal(
    "host.label_unknown",
    meaning="an aggregate's ``perfvm:class`` is not declared",
    advice="correct the aggregate's metadata",
    words=lambda d: (
        f"an aggregate of the host has perfvm:class={', '.join(d['found'])}, which is "
        f"not declared; the policy declares {', '.join(d['expected'])}"
    ),
)
LABEL_AMBIGUOUS: Final = Refusal(
    "host.label_ambiguous",
    meaning="labels of the host name several pinned classes, and one is exclusive",
    advice="give each pinned class an aggregate and hosts of its own",
    words=lambda d: (
        f"aggregates offer the host to the pinned classes {', '.join(d['found'])}, "
        "whose VMs cannot be told apart by their pins"
    ),
)


def _check(case: HostCase[VMClass | None]) -> Reason | None:
    unknown = case.host.labels - case.policy.by_name.keys()
    if unknown:
        return LABEL_UNKNOWN.because(
            found=sorted(unknown), expected=sorted(case.policy.by_name)
        )
    pinned = [c for c in case.policy.pinned_classes if c.name in case.host.labels]
    if len(pinned) > 1 and any(c.exclusive != "none" for c in pinned):
        return LABEL_AMBIGUOUS.because(found=sorted(c.name for c in pinned))
    return None


RULE: Final = HostRule(
    40, _check, (LABEL_UNKNOWN, LABEL_AMBIGUOUS), hosts=("labelled",)
)
