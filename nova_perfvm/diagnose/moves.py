# SPDX-License-Identifier: Apache-2.0
"""The commands by which a server leaves its host or gets another flavor.

Nova migrates and resizes active or stopped servers without a task; paused servers it
migrates live.  A server with another status must first be made active or stopped: see
check_instance_state of each action in nova.compute.api.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from nova_perfvm.facts.demand import Request, in_cloud, with_groups
from nova_perfvm.facts.placement_request import Group
from nova_perfvm.facts.requests import request_for
from nova_perfvm.facts.snapshot import OFFLOADED, Server, Snapshot
from nova_perfvm.facts.snapshot.pci import rebuilt
from nova_perfvm.microversions import LIVE_MIGRATION

# The key of an aggregate's metadata that makes an availability zone.
_READY: Final = frozenset({"ACTIVE", "SHUTOFF"})
_RUNNING: Final = frozenset({"ACTIVE", "PAUSED"})
# Traits of Neutron's providers: the physical network, and kinds of ports.
_OF_NETWORKS: Final = ("CUSTOM_PHYSNET_", "CUSTOM_VNIC_TYPE_")
# The commands for statuses in which a server leaves its host other than by a migration.
_OTHERWISE: Final = {
    "PAUSED": (
        f"--os-compute-api-version {LIVE_MIGRATION} server migrate --live-migration"
    ),
    "SHELVED": "server shelve --offload",
}
# The command that makes a server of a status active or stopped.
_FIRST: Final = {
    "ERROR": "server reboot --hard",
    "PAUSED": "server unpause",
    "RESCUE": "server unrescue",
    "SHELVED": "server unshelve",
    OFFLOADED: "server unshelve",
    "SOFT_DELETED": "server restore",
    "SUSPENDED": "server resume",
    "VERIFY_RESIZE": "server resize confirm",
}


def migrate(server_id: str, status: str) -> str:
    """Return the commands after which the scheduler chooses another host."""
    if status in _OTHERWISE:
        command = f"openstack {_OTHERWISE[status]} {server_id}"
        # The client's ``shelve --offload`` ignores servers that are already shelved.
        return prepared(server_id, status, command) if status == "SHELVED" else command
    return _moved(server_id, status, "migrate")


def resize(server_id: str, status: str, flavor: str) -> str:
    """Return the commands that give a server another flavor.

    :param flavor: name or ID, quoted for a shell
    """
    return _moved(server_id, status, f"resize --flavor {flavor}")


def recreate(server_id: str, flavor: str, disk: str, why: str) -> str:
    """Return the command for a new server that replaces one that Nova cannot change.

    An operator must run the command by hand: Nova deletes the image of a shelved server
    together with the server.

    :param flavor: name or ID, quoted for a shell
    :param disk: options for the root disk; empty for a local disk of the flavor's size
    """
    return (
        f"openstack server create --flavor {flavor} --image IMAGE {disk}NAME"
        f"  # by hand, in place of {server_id}: {why}"
    )


def rebuild(server_id: str, status: str) -> str:
    """Return the commands that rebuild a server from another image."""
    command = f"openstack server rebuild --image IMAGE {server_id}"
    return prepared(server_id, status, f"{command}  # replaces its root disk")


def _moved(server_id: str, status: str, action: str) -> str:
    command = f"openstack server {action} {server_id} --wait"
    confirm = f"openstack {_FIRST['VERIFY_RESIZE']} {server_id}"
    return prepared(server_id, status, f"{command}\n{confirm}")


def prepared(server_id: str, status: str, commands: str) -> str:
    """Precede `commands` by the command that makes the server active or stopped."""
    if status not in _FIRST:
        return commands
    # Nova answers before the status changes, and few of the client's commands can wait;
    # ``reboot --wait`` ends at once while the server is still in ERROR.
    look = f"openstack server show -f value -c status {server_id}"
    return (
        f"openstack {_FIRST[status]} {server_id}\n"
        f"while {look} | grep -qx {status}; do sleep 2; done\n{commands}"
    )


def ready(server: Server) -> bool:
    """Return whether a server can leave its host without a preparing command."""
    return server.task is None and (
        server.status in _READY or server.status in _OTHERWISE
    )


def kinds(server: Server) -> frozenset[str]:
    """Return the kinds of migration that Nova accepts now: ``live``, ``cold``."""
    if server.task is not None:
        return frozenset()
    found = {"live"} if server.status in _RUNNING else set()
    return frozenset(found | ({"cold"} if server.status in _READY else set()))


def request_of(snapshot: Snapshot, server: Server) -> Request:
    """Return the request of a server that moves, by the flavor embedded in it.

    :raises RequestError: when the effect of the flavor's extra specs is not known
    """
    request = request_for(
        server.embedded,
        snapshot.image_of(server),
        volume_backed=server.volume_backed,
        aliases=snapshot.pci_aliases,
        devices=server.pci_requests,
        exists=True,
    )
    claimed = server.pci_requests or ()
    if server.status != OFFLOADED:
        claimed = rebuilt(claimed, snapshot.pci_aliases or {})
    request = replace(request, pci_claimed=claimed)
    request = with_groups(request, list(_of_ports(snapshot, server)))
    request = in_cloud(request, snapshot)
    # Snapshots do not contain the scheduler hints of servers.
    request = replace(request, keys=replace(request.keys, hints=None))
    # A server that failed to build has no size on a host yet.
    vcpus = server.vcpus if server.built else None
    facts = request.facts._replace(running_vcpus=vcpus)
    group = snapshot.group_by_server.get(server.id)
    return replace(
        request, facts=facts, project=server.project, server=server.id, group=group
    )


def zone_of(snapshot: Snapshot, server: Server) -> str:
    """Return the zone that Nova asks for when a server moves.

    If the snapshot does not tell to which zone Nova binds the server, the zone is the
    one that the server is in.
    """
    told = snapshot.zones_told
    return zone_asked(snapshot, server.bound_zone if told else server.availability_zone)


def zone_asked(snapshot: Snapshot, zone: str) -> str:
    """Return the zone that Nova asks Placement for; empty if Nova asks for none.

    Nova asks for no zone that no aggregate makes: the default zone of hosts without
    one.
    """
    return zone if zone in snapshot.aggregates_by_zone else ""


def _of_ports(snapshot: Snapshot, server: Server) -> Iterator[Group]:
    """Yield the request groups of a server's ports, by the resources they hold.

    The provider's traits name the network and all kinds of ports that it serves.  No
    API names the kind of one port, so the next provider must serve all these kinds.
    """
    held = snapshot.held_by_ports.get(server.id, {})
    for number, (uuid, taken) in enumerate(sorted(held.items())):
        traits = snapshot.provider_by_uuid[uuid].traits
        wanted = (t for t in traits if t.startswith(_OF_NETWORKS))
        yield Group(f"_port{number}", taken, frozenset(wanted))


def goes_elsewhere(server: Server) -> bool:
    """Return whether a server needs another host when it leaves its host."""
    return server.status != "SHELVED"


def describe(servers: Iterable[Server]) -> str:
    """Describe the servers that leave a host, such as ``migrate a (ID), b (ID)``.

    The status of servers that Nova cannot migrate at once is added.
    """
    names = [
        str(s)
        if s.task is None and s.status in _READY
        else f"{s} in {s.task or s.status}"
        for s in servers
    ]
    return f"migrate {', '.join(names)}" if names else ""
