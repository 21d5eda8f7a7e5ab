# SPDX-License-Identifier: Apache-2.0
"""Check Placement's allocations against Nova's servers and its own inventories."""

from collections.abc import Iterator
from shlex import quote

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.facts.children import host_of_child
from nova_perfvm.facts.snapshot import Provider, Server, Snapshot
from nova_perfvm.findings import Finding
from nova_perfvm.placement.host_schemes import scheme_counting
from nova_perfvm.placement.schemes import is_ours
from nova_perfvm.printable import some_of


def check(subject: Subject) -> Iterator[Finding]:
    """List leaked, missing and misplaced allocations."""
    snapshot = subject.snapshot
    homeless = {
        server.id: f"{server} is in {server.status} and on no host"
        for server in snapshot.servers
        if server.host is None and not is_moving(snapshot, server)
    }
    consumers = {
        consumer
        for provider in filter(snapshot.is_seen, snapshot.providers)
        for consumer in provider.allocations
        # An evacuated server's allocation on the failed host is Nova's to remove; it
        # does not excuse allocations on other hosts.
        if consumer not in homeless
        or (consumer, provider.root or provider.uuid) not in snapshot.left_behind
    }
    left = {
        move.id: f"{snapshot.server_by_id[move.server]} is not being moved any more: "
        f"Nova left its {move.kind} {move.status} at {move.updated}"
        for move in snapshot.left_moves
    }
    known = snapshot.server_by_id.keys() - homeless.keys()
    known |= {migration.id for migration in snapshot.migrations} - left.keys()
    whys = homeless | left
    for consumer in sorted(consumers - known):
        yield Finding.of(
            codes.LEAKED_ALLOCATION,
            consumer,
            whys.get(consumer, "no server on a host has this UUID"),
            f"openstack resource provider allocation delete {consumer}",
        )
    yield from _places(subject)


def is_moving(snapshot: Snapshot, server: Server) -> bool:
    """Return whether Nova may be about to change the server's allocations."""
    return server.busy or server.id in snapshot.moving


def _places(subject: Subject) -> Iterator[Finding]:
    """Compare the hosts of servers with the hosts of their allocations."""
    snapshot = subject.snapshot
    nodes = {host.provider: host for host in snapshot.hosts}
    # {consumer: {UUID of a root provider: the providers that it holds resources of}}.
    held: dict[str, dict[str, list[Provider]]] = {}
    for provider in snapshot.providers:
        root = provider.root or provider.uuid
        for consumer in provider.allocations:
            held.setdefault(consumer, {}).setdefault(root, []).append(provider)
    for server in snapshot.servers:
        if server.host is None or is_moving(snapshot, server):
            continue
        roots = held.get(server.id, {})
        lost = server.host in subject.hosts_seen and not any(
            root in nodes and nodes[root].host == server.host for root in roots
        )
        if lost:
            yield Finding.of(
                codes.ALLOCATION_MISSING,
                str(server),
                f"it is on {server.host} and has no allocation there",
                codes.HEAL,
            )
        for root, providers in roots.items():
            if (server.id, root) in snapshot.left_behind:
                continue
            if root in nodes and nodes[root].host != server.host:
                named = " ".join(f"--provider {p.uuid}" for p in providers)
                unset = f"allocation unset {named} {server.id}"
                yield Finding.of(
                    codes.ALLOCATION_ELSEWHERE,
                    str(server),
                    f"it is on {server.host} and holds an allocation of "
                    f"{nodes[root].host}",
                    codes.HEAL if lost else f"openstack resource provider {unset}",
                )


def check_usage(subject: Subject) -> Iterator[Finding]:
    """List the inventories with more allocated than their capacity."""
    for provider in subject.snapshot.providers:
        for name, used, capacity in provider.overused():
            yield Finding.of(
                codes.OVER_INVENTORY,
                provider.name,
                f"{used} of {capacity} {name} allocated",
                f"openstack resource provider show --allocations {provider.uuid}",
            )


def check_orphans(subject: Subject) -> Iterator[Finding]:
    """List compute providers without a host, and children without an enrolled host."""
    snapshot = subject.snapshot
    hosts = {host.provider: host for host in snapshot.hosts}
    nodes = {host.node: host for host in snapshot.hosts}
    for provider in filter(snapshot.is_seen, snapshot.providers):
        root = provider.root or provider.uuid
        host = hosts.get(root)
        alive = "" if host else _sign_of_life(snapshot, root)
        # Placement refuses to delete a provider with allocations.
        verb = "show --allocations" if provider.allocations or alive else "delete"
        remedy = f"openstack resource provider {verb} {provider.uuid}"
        if host is None and snapshot.unlisted:
            remedy += "\nnova-manage cell_v2 discover_hosts --verbose"
        if _is_child(provider):
            placed = host is not None and provider.parent is not None
            home = host or nodes.get(host_of_child(provider.name) or "")
            view = subject.elastic_hosts.get(home.host) if home else None
            enrolled = view is not None and bool(view.enrolled or view.isolated_by)
            # A detached child is harmless; it is kept until nova-compute has forgotten
            # it.
            if provider.detached or (placed and enrolled):
                continue
            if home is not None and home.provider in snapshot.provider_by_uuid:
                # enroll puts the child back; unenroll empties and detaches it.
                verb = "enroll" if enrolled else "unenroll"
                remedy = f"openstack perfvm host {verb} {quote(home.host)}"
            words = f"the provider is outside any host's tree{alive}"
            if host is not None:
                words = f"{host.host} is not enrolled for this policy"
            yield Finding.of(codes.ORPHANED_CHILD, provider.name, words, remedy)
        elif host is None and provider.parent is None and _is_compute(provider):
            yield Finding.of(
                codes.ORPHANED_PROVIDER,
                provider.name,
                f"it looks like a compute host's, but Nova lists no such host{alive}",
                remedy,
            )


def _sign_of_life(snapshot: Snapshot, root: str) -> str:
    """Return why a provider may belong to a host that Nova does not list."""
    if snapshot.unlisted:
        return (
            f": it may belong to {some_of(snapshot.unlisted, 3)}: Nova has a "
            "nova-compute service there and lists no hypervisor"
        )
    return ": it changed in the last hour" if root in snapshot.recent else ""


def _is_child(provider: Provider) -> bool:
    found = scheme_counting(provider.inventories)
    enrolls = found is not None and found.scheme.enrolls
    return enrolls or host_of_child(provider.name) is not None


def _is_compute(provider: Provider) -> bool:
    names = provider.inventories.keys()
    return (
        any(map(is_ours, provider.traits))
        or bool({const.PCPU, const.VCPU} & names)
        or scheme_counting(names) is not None
    )
