# SPDX-License-Identifier: Apache-2.0
"""A VM of a pinned class is on hosts that the policy manages.

On others nothing changes, but no rule holds there, and such VMs were promised a
host of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.rules.rule import HostRule, Refusal

if TYPE_CHECKING:
    from nova_perfvm.facts import HostFacts, Reason, RequestFacts
    from nova_perfvm.policy import Policy, VMClass


NOT_MANAGED: Final = Refusal(
    "host.not_managed",
    lambda _: (
        "managed_hosts is labelled, and no aggregate of the host has metadata "
        "perfvm:class"
    ),
    audit="audit.host_not_managed",
    remedy="migrate",
    standing=True,
)


def _check(
    _policy: Policy, _vm_class: VMClass | None, _request: RequestFacts, _host: HostFacts
) -> Reason | None:
    return NOT_MANAGED.because()


RULE: Final = HostRule(20, _check, (NOT_MANAGED,), hosts="unmanaged", vms=("pinned",))
