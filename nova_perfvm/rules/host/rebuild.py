# SPDX-License-Identifier: Apache-2.0
"""Refuse requests without a claim in Placement; real rebuilds do not get here.

Nova claims nothing for a rebuild, and recognizes a rebuild by a scheduler hint alone,
which users can set for other requests.  The rule sees no real rebuild:
:class:`nova_perfvm.scheduler.filters.PerfVMFilter` does not apply rules about hosts to
a server that is being rebuilt on its host.
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
        "upgrade Nova; a server that was created with the hint cannot move: create a "
        "new server from its volume"
    ),
)


def _check(case: HostCase[VMClass | None]) -> Reason | None:
    if case.request.claimed:
        return None
    # Without claimed units, an elastic host looks free to the next VM, whatever its
    # labels.
    ours = case.host.isolating or case.policy.manages(case.host.labels)
    return NOT_A_REBUILD.because() if ours else None


RULE: Final = HostRule(30, _check, (NOT_A_REBUILD,), hosts=STATES)
