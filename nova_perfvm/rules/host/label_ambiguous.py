# SPDX-License-Identifier: Apache-2.0
"""A host is reserved for one pinned class, if any of them is exclusive.

Pins cannot tell their VMs apart.
"""

from typing import Final

from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import HostCase, HostRule, Refusal

LABEL_AMBIGUOUS: Final = Refusal(
    "host.label_ambiguous",
    lambda d: (
        f"aggregates offer the host to the pinned classes {', '.join(d['found'])}, "
        "which cannot be told apart by their pins"
    ),
    meaning="several pinned classes, one of them exclusive",
    advice="one aggregate, and so one host, for each",
)


def _check(case: HostCase[VMClass | None]) -> Reason | None:
    pinned = [c for c in case.policy.pinned_classes if c.name in case.host.labels]
    if len(pinned) > 1 and any(c.exclusive != "none" for c in pinned):
        return LABEL_AMBIGUOUS.because(found=sorted(c.name for c in pinned))
    return None


RULE: Final = HostRule(60, _check, (LABEL_AMBIGUOUS,), hosts="labelled")
