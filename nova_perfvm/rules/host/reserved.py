# SPDX-License-Identifier: Apache-2.0
"""A host that aggregates reserve for classes takes only VMs of these classes."""

from typing import Final

from nova_perfvm import findings
from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import HostCase, HostRule, Refusal

CLASS_RESERVED: Final = Refusal(
    "host.class_reserved",
    words=lambda d: (
        f"an aggregate reserves the host for class {', '.join(d['reserved'])}"
    ),
    meaning="an aggregate reserves the host for other classes",
    advice="none, or change the aggregate's metadata",
    audit=findings.HOST_RESERVED,
    remedy="migrate",
)


def _check(case: HostCase[VMClass | None]) -> Reason | None:
    if case.vm_class is None or case.vm_class.name not in case.host.labels:
        return CLASS_RESERVED.because(reserved=sorted(case.host.labels))
    return None


RULE: Final = HostRule(50, _check, (CLASS_RESERVED,), hosts=("labelled",))
