# SPDX-License-Identifier: Apache-2.0
"""Nova claims in Placement what a request takes, unless it is a rebuild.

Nova believes a scheduler hint that says so, and hints are the user's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.rules.rule import HostRule, Refusal

if TYPE_CHECKING:
    from nova_perfvm.facts import HostFacts, Reason, RequestFacts
    from nova_perfvm.policy import Policy, VMClass


NOT_A_REBUILD: Final = Refusal(
    "request.not_a_rebuild",
    lambda _: (
        "the request's scheduler hint _nova_check_type says that it is a rebuild, so "
        "that Nova claims nothing in Placement, but it is none"
    ),
    standing=True,
)


def _check(
    _policy: Policy, _vm_class: VMClass | None, request: RequestFacts, _host: HostFacts
) -> Reason | None:
    return None if request.claimed else NOT_A_REBUILD.because()


RULE: Final = HostRule(30, _check, (NOT_A_REBUILD,))
