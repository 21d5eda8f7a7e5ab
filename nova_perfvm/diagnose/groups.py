# SPDX-License-Identifier: Apache-2.0
"""Judge where servers of a server group may be, and which hosts Nova prefers.

As ServerGroupAffinityFilter, ServerGroupAntiAffinityFilter, nova-compute's claim, and
the weighers of the soft policies judge.
"""

from collections.abc import Iterator, Sequence

from nova_perfvm import constants as const
from nova_perfvm.facts import Reason
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Server, ServerGroup, Snapshot
from nova_perfvm.facts.snapshot.groups import AFFINITY, ANTI_AFFINITY, SOFT


def reasons(group: ServerGroup, server: str, view: HostView) -> Iterator[Reason]:
    """Yield why Nova refuses a server of a group on a host.

    A server of an affinity group comes only to hosts with servers of the group: so no
    server can leave the only host of its group.

    :param server: the server's ID; empty for a new server
    """
    if group.policy == AFFINITY and not _members(group, view.servers):
        if hosts := view.cloud.hosts_of(group):
            data = {"group": str(group), "hosts": sorted(hosts)}
            yield Reason(const.NOVA_GROUP_AFFINITY, data)
    elif group.policy == ANTI_AFFINITY:
        servers = [str(one) for one in _claimed(group, view) if one.id != server]
        most = group.max_server_per_host
        if len(servers) >= most:
            yield Reason(
                const.NOVA_GROUP_ANTI_AFFINITY,
                {"group": str(group), "servers": servers, "most": most},
            )


def room(group: ServerGroup | None, view: HostView, most: int) -> int:
    """Return how many new servers of a group a host may get, if the host takes one.

    :param most: where to stop counting
    """
    if group is None or group.policy != ANTI_AFFINITY:
        return most
    claimed = len(_claimed(group, view))
    return min(most, max(1, group.max_server_per_host - claimed))


def rank(group: ServerGroup | None, view: HostView) -> int:
    """Return how well a host suits a soft policy; the highest number is best."""
    if group is None or not group.policy.startswith(SOFT):
        return 0
    here = len(_members(group, view.servers))
    return -here if group.policy.endswith(ANTI_AFFINITY) else here


def unmet(group: ServerGroup, hosts: Sequence[str]) -> int:
    """Return by how much a group violates a soft policy.

    For soft affinity, the number of hosts beyond one; for soft anti-affinity, the
    number of servers beyond the first one on each host.

    :param hosts: the host of each server of the group
    """
    if group.policy.endswith(ANTI_AFFINITY):
        return len(hosts) - len(set(hosts))
    return max(0, len(set(hosts)) - 1)


def preferred(snapshot: Snapshot, group: ServerGroup) -> str:
    """Describe the hosts that Nova prefers for a server of a group."""
    hosts = ", ".join(sorted(snapshot.hosts_of(group))) or "no host"
    other = "other hosts" if group.policy.endswith(ANTI_AFFINITY) else "these"
    return f"{group} has servers on {hosts}: nova-scheduler prefers {other}"


def _claimed(group: ServerGroup, view: HostView) -> list[Server]:
    """Return the group's members on a host, and those moving to or from the host.

    nova-compute counts moving servers too, and so refuses servers that the filter
    passes.
    """
    moving = view.cloud.moving_by_host.get(view.host, ())
    found = {one.id: one for one in _members(group, (*view.servers, *moving))}
    return list(found.values())


def _members(group: ServerGroup, servers: Sequence[Server]) -> list[Server]:
    return [server for server in servers if server.id in group.members]
