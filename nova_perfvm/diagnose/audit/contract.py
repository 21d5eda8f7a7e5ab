# SPDX-License-Identifier: Apache-2.0
"""Whether servers hold in Placement what their class's VMs take.

A VM that does not hold its slot leaves it to another: the cap of its host and
the exclusion of other classes are gone, whatever its flavor says by now.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from shlex import quote

from nova_perfvm.diagnose.audit import finding as codes
from nova_perfvm.diagnose.audit.finding import Finding
from nova_perfvm.diagnose.audit.placement import is_moving
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.facts.snapshot import Provider, Server
from nova_perfvm.placement.contract import contract


def check(subject: Subject) -> Iterator[Finding]:
    """List the servers that do not hold what VMs of their class take of a host.

    Units of elastic hosts are looked at host by host, see
    :mod:`nova_perfvm.diagnose.audit.units`; here it is those of VMs of pinned
    classes on hosts that should be elastic, and are not.
    """
    if subject.policy.placement == "none":
        return
    units = subject.policy.placement == "units"
    elastic = {host.host for host in subject.elastic.hosts} if units else set()
    snapshot = subject.snapshot
    for host in snapshot.hosts:
        tree = snapshot.trees.get(host.provider)
        if tree is None or host.host in elastic or not subject.managed(host.host):
            continue
        for server in snapshot.servers_by_host[host.host]:
            # In the course of a resize it may hold what its flavor before took.
            if not is_moving(snapshot, server):
                yield from _lacking(subject, server, tree)


def _lacking(
    subject: Subject, server: Server, tree: Iterable[Provider]
) -> Iterator[Finding]:
    vm_class = subject.class_of(server)
    units = subject.policy.placement == "units"
    # Without an elastic host there are no units, and general VMs need none there.
    if vm_class is None or (units and not vm_class.pinned):
        return
    held = Counter[str]()
    for provider in tree:
        held.update(provider.allocations.get(server.id, {}))
    wanted = contract(subject.policy, vm_class).amounts
    lacking = wanted - held
    if lacking:
        yield Finding(
            codes.NOT_CLAIMED,
            str(server),
            f"on {server.host}: VMs of class {vm_class.name} take {_words(wanted)} of "
            f"their host, and it lacks {_words(lacking)}",
            _enroll(server.host) if units else subject.resize(server),
        )


def _enroll(host: str | None) -> str:
    """Return the command that gives units to the VMs of a host."""
    return f"openstack perfvm host enroll {quote(host or '')} --backfill"


def _words(amounts: Counter[str]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(amounts.items()))
