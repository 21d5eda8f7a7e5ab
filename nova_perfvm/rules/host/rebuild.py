# SPDX-License-Identifier: Apache-2.0
"""A request that claims to be a rebuild is one: for a rebuild Nova claims nothing.

Nova believes a scheduler hint that says so, and hints are the user's.
"""

from typing import Final

from nova_perfvm.facts import Reason
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.rule import STATES, HostCase, HostRule, Refusal

NOT_A_REBUILD: Final = Refusal(
    "request.not_a_rebuild",
    meaning=(
        "the scheduler hint ``_nova_check_type`` says that the request is a rebuild, "
        "so that Nova claims nothing in Placement for it; but no server is being "
        "rebuilt, or not on this host"
    ),
    advice=(
        "upgrade Nova; a server that was created with the hint "
        "is moved to no host: make a new one of its volume"
    ),
)


def _check(case: HostCase[VMClass | None]) -> Reason | None:
    if case.request.claimed:
        return None
    # Units that nobody claims keep nobody off an elastic host, whatever its labels.
    ours = case.host.isolating or case.policy.manages(case.host.labels)
    return NOT_A_REBUILD.because() if ours else None


RULE: Final = HostRule(30, _check, (NOT_A_REBUILD,), hosts=STATES)
