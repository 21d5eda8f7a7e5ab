# SPDX-License-Identifier: Apache-2.0
"""Server groups of Nova, which keep servers on one host or apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from nova_perfvm.printable import one_line

AFFINITY: Final = "affinity"
ANTI_AFFINITY: Final = "anti-affinity"
SOFT: Final = "soft-"
# The filter that Nova needs for a policy: without it, Nova refuses the servers of the
# group (nova.scheduler.utils._get_group_details).
FILTERS: Final = {
    AFFINITY: "ServerGroupAffinityFilter",
    ANTI_AFFINITY: "ServerGroupAntiAffinityFilter",
}


@dataclass(frozen=True)
class ServerGroup:
    """One server group.

    :ivar policy: ``affinity`` or ``anti-affinity``, which filters enforce; or
        ``soft-affinity`` or ``soft-anti-affinity``, which weighers prefer
    :ivar members: IDs of the group's servers that are not deleted
    :ivar max_server_per_host: for ``anti-affinity``: the number of members that may
        share a host
    """

    id: str
    name: str
    policy: str
    # Not in repr(), as messages about a request name only the group.
    members: frozenset[str] = field(default=frozenset(), repr=False)
    max_server_per_host: int = 1

    def __str__(self) -> str:
        """Return policy, name and ID."""
        return f"{self.policy} group {one_line(self.name)} ({self.id})"
