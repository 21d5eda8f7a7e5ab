# SPDX-License-Identifier: Apache-2.0
"""A pinned VM of no class stays away where it would strand a slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.rules.rule import HostRule, Refusal
from nova_perfvm.rules.slots import host_slots

if TYPE_CHECKING:
    from nova_perfvm.facts import HostFacts, Reason, RequestFacts
    from nova_perfvm.policy import Policy, VMClass


CLASSLESS_PINNED: Final = Refusal(
    "host.classless_pinned",
    lambda d: (
        f"a pinned VM of no class would strand one of the host's {d['slots']} slot(s) "
        f"for class {d['class']}"
    ),
    audit="audit.classless_pinned",
    standing=True,
)


def _check(
    policy: Policy, _vm_class: VMClass | None, request: RequestFacts, host: HostFacts
) -> Reason | None:
    if not request.pinned:
        return None
    for vm_class in policy.pinned_classes:
        slots = host_slots(vm_class, host.cells)
        if slots:
            return CLASSLESS_PINNED.because(**{"class": vm_class.name, "slots": slots})
    return None


RULE: Final = HostRule(80, _check, (CLASSLESS_PINNED,), vms=("classless",))
