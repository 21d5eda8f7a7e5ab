# SPDX-License-Identifier: Apache-2.0
"""How a server leaves its host, or gets another flavor, as its status lets it.

Nova migrates and resizes what is active or stopped and has no task; what is
paused it migrates live.  Whatever else a server is, it has to be brought there
first: see check_instance_state of each action in nova.compute.api.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from nova_perfvm.facts.demand import Group, Request, in_cloud, request_for, with_groups
from nova_perfvm.facts.snapshot import OFFLOADED, Server, Snapshot
from nova_perfvm.facts.snapshot.pci import rebuilt
from nova_perfvm.microversions import LIVE_MIGRATION

# Of an aggregate's metadata.
_ZONE: Final = "availability_zone"
_READY: Final = frozenset({"ACTIVE", "SHUTOFF"})
_RUNNING: Final = frozenset({"ACTIVE", "PAUSED"})
# Traits of Neutron's providers: the physical network, and kinds of ports.
_OF_NETWORKS: Final = ("CUSTOM_PHYSNET_", "CUSTOM_VNIC_TYPE_")
# What leaves a host in another way than by a migration, and how.
_OTHERWISE: Final = {
    "PAUSED": (
        f"--os-compute-api-version {LIVE_MIGRATION} server migrate --live-migration"
    ),
    "SHELVED": "server shelve --offload",
}
# What makes a server active or stopped.
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
        # The client's ``shelve --offload`` passes over what is shelved already.
        return prepared(server_id, status, command) if status == "SHELVED" else command
    return _moved(server_id, status, "migrate")


def resize(server_id: str, status: str, flavor: str) -> str:
    """Return the commands that give a server another flavor.

    :param flavor: name or ID, quoted for a shell
    """
    return _moved(server_id, status, f"resize --flavor {flavor}")


def recreate(server_id: str, flavor: str, disk: str, why: str) -> str:
    """Return how another server takes the place of one that Nova cannot change.

    By hand: Nova deletes the image of a shelved server together with the server.

    :param flavor: name or ID, quoted for a shell
    :param disk: options for the root disk, empty for one of the flavor's size
    """
    return (
        f"openstack server create --flavor {flavor} --image IMAGE {disk}NAME"
        f"  # by hand, in place of {server_id}: {why}"
    )


def rebuild(server_id: str, status: str) -> str:
    """Return the commands that give a server another image, and so a new root disk."""
    command = f"openstack server rebuild --image IMAGE {server_id}"
    return prepared(server_id, status, f"{command}  # replaces its root disk")


def _moved(server_id: str, status: str, action: str) -> str:
    command = f"openstack server {action} {server_id} --wait"
    confirm = f"openstack {_FIRST['VERIFY_RESIZE']} {server_id}"
    return prepared(server_id, status, f"{command}\n{confirm}")


def prepared(server_id: str, status: str, commands: str) -> str:
    """Return commands for an active or stopped server, after what makes it so."""
    if status not in _FIRST:
        return commands
    # Nova answers before it is done.  Of these commands few of the client wait, and
    # ``reboot --wait`` ends at once where the server is still in ERROR.
    look = f"openstack server show -f value -c status {server_id}"
    return (
        f"openstack {_FIRST[status]} {server_id}\n"
        f"while {look} | grep -qx {status}; do sleep 2; done\n{commands}"
    )


def ready(server: Server) -> bool:
    """Return whether a server leaves its host without anything being done before."""
    return server.task is None and (
        server.status in _READY or server.status in _OTHERWISE
    )


def kinds(server: Server) -> frozenset[str]:
    """Return in which ways Nova migrates a server now: ``live``, ``cold``."""
    if server.task is not None:
        return frozenset()
    found = {"live"} if server.status in _RUNNING else set()
    return frozenset(found | ({"cold"} if server.status in _READY else set()))


def request_of(snapshot: Snapshot, server: Server) -> Request:
    """Return what a server asks for when it moves, by the flavor embedded in it.

    :raises RequestError: when nova-api would refuse its flavor and image today
    """
    request = request_for(
        server.embedded,
        snapshot.image_of(server),
        volume_backed=server.volume_backed,
        aliases=snapshot.pci_aliases,
        devices=server.pci_requests,
    )
    claimed = server.pci_requests or ()
    if server.status != OFFLOADED:
        claimed = rebuilt(claimed, snapshot.pci_aliases or {})
    request = replace(request, pci_claimed=claimed)
    request = with_groups(request, list(_of_ports(snapshot, server)))
    request = in_cloud(request, snapshot)
    # No snapshot has the scheduler hints of servers.
    request = replace(request, keys=replace(request.keys, hints=None))
    # One that failed to build has no size yet.
    vcpus = server.vcpus if server.built else None
    facts = request.facts._replace(running_vcpus=vcpus)
    group = snapshot.group_by_server.get(server.id)
    return replace(
        request, facts=facts, project=server.project, server=server.id, group=group
    )


def zone_of(snapshot: Snapshot, server: Server) -> str:
    """Return the zone that a server asks for when it moves; its own if nobody tells."""
    told = snapshot.zones_told
    return zone_asked(snapshot, server.bound_zone if told else server.availability_zone)


def zone_asked(snapshot: Snapshot, zone: str) -> str:
    """Return the zone that Nova asks Placement for; empty where it asks for none.

    It asks for none where no aggregate makes the zone: that of hosts without one.
    """
    made = (aggregate.metadata.get(_ZONE) for aggregate in snapshot.aggregates)
    return zone if zone in made else ""


def _of_ports(snapshot: Snapshot, server: Server) -> Iterator[Group]:
    """Yield what the ports of a server ask of Placement, as what it holds tells it.

    Of a network and of kinds of ports the traits tell.  Nobody tells of which kind a
    port is: its next provider has to serve all that this one does.
    """
    held = snapshot.held_by_ports.get(server.id, {})
    for number, (uuid, taken) in enumerate(sorted(held.items())):
        traits = snapshot.provider_by_uuid[uuid].traits
        wanted = (t for t in traits if t.startswith(_OF_NETWORKS))
        yield Group(f"_port{number}", taken, frozenset(wanted))


def goes_elsewhere(server: Server) -> bool:
    """Return whether a server needs another host when it leaves its own."""
    return server.status != "SHELVED"


def describe(servers: Iterable[Server]) -> str:
    """Return which servers leave their host, such as ``migrate a (ID), b (ID)``.

    With the state of those that Nova does not migrate as they are.
    """
    names = [
        str(s)
        if s.task is None and s.status in _READY
        else f"{s} in {s.task or s.status}"
        for s in servers
    ]
    return f"migrate {', '.join(names)}" if names else ""
