# SPDX-License-Identifier: Apache-2.0
"""A host that aggregates reserve is for VMs of those classes only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.rules.rule import HostRule, Refusal

if TYPE_CHECKING:
    from nova_perfvm.facts import HostFacts, Reason, RequestFacts
    from nova_perfvm.policy import Policy, VMClass


CLASS_RESERVED: Final = Refusal(
    "host.class_reserved",
    lambda d: f"an aggregate reserves the host for class {', '.join(d['reserved'])}",
    audit="audit.host_reserved",
    remedy="migrate",
    standing=True,
)


def _check(
    _policy: Policy, vm_class: VMClass | None, _request: RequestFacts, host: HostFacts
) -> Reason | None:
    if vm_class is None or vm_class.name not in host.labels:
        return CLASS_RESERVED.because(reserved=sorted(host.labels))
    return None


RULE: Final = HostRule(50, _check, (CLASS_RESERVED,), hosts="labelled")
