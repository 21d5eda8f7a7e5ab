# SPDX-License-Identifier: Apache-2.0
"""Whether servers hold in Placement what their class's VMs take.

A VM that does not hold its slot leaves it to another: the cap of its host and
the exclusion of other classes are gone, whatever its flavor says by now.  One
that holds more keeps others off that the host has room for.
"""

from collections import Counter
from collections.abc import Iterator
from shlex import quote
from typing import NamedTuple

from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.placement import is_moving
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.diagnose.sizing import as_enrolled
from nova_perfvm.facts.snapshot import Server
from nova_perfvm.findings import Finding
from nova_perfvm.placement.schemes import Claims, scheme_of
from nova_perfvm.policy import VMClass


class ClassClaims(NamedTuple):
    """What a server takes of its host, and should as one of its class."""

    vm_class: VMClass
    claims: Claims

    def __str__(self) -> str:
        """Return what VMs of its class take."""
        wanted = _words(self.claims.wanted) or "nothing"
        return f"VMs of class {self.vm_class.name} take {wanted} of their host"


def claim(subject: Subject, server: Server) -> ClassClaims | None:
    """Return what a server takes of its host, None if that cannot be told.

    A host that was enrolled for another number of children is judged by that one.
    """
    vm_class = subject.class_of(server)
    host = subject.hosts_seen.get(server.host or "")
    # In the course of a resize it may hold what its flavor before took.
    if vm_class is None or host is None or is_moving(subject.snapshot, server):
        return None
    view = subject.elastic_hosts.get(host.host)
    policy = as_enrolled(subject.policy, view) if view else subject.policy
    held = Counter[str]()
    for provider in subject.snapshot.trees[host.provider]:
        held.update(provider.allocations.get(server.id, {}))
    return ClassClaims(vm_class, scheme_of(policy).claims(policy, vm_class, held))


def check(subject: Subject) -> Iterator[Finding]:
    """List the servers that hold more or less than VMs of their class take.

    Who has no units on elastic hosts is looked at host by host, see
    :mod:`nova_perfvm.diagnose.audit.units`; here it is VMs of pinned classes on
    hosts that should be elastic, and are not, and those with the units that VMs of
    another class take.
    """
    scheme = scheme_of(subject.policy)
    if not scheme.counts:
        return
    for server in subject.snapshot.servers:
        elastic = server.host in subject.elastic_hosts
        if not (elastic or subject.managed(server.host or "")):
            continue
        found = claim(subject, server)
        if found is None:
            continue
        if found.claims.excess:
            yield _too_much(subject, server, found)
        # Of those without any unit on an elastic host the check of hosts tells.
        lacking, held = found.claims.lacking, found.claims.held
        if lacking and not (elastic and not held[scheme.resource_class]):
            yield from _lacking(subject, server, found)


def _too_much(subject: Subject, server: Server, found: ClassClaims) -> Finding:
    excess = found.claims.excess
    remedy = subject.resize(server)
    if not excess.keys() & found.claims.wanted.keys():
        names = " ".join(f"--resource-class {name}" for name in sorted(excess))
        remedy = f"openstack resource provider allocation unset {names} {server.id}"
    return Finding.of(
        codes.CLAIMED_TOO_MUCH,
        str(server),
        f"on {server.host}: {found}, and it holds {_words(excess)} more",
        remedy,
    )


def _lacking(subject: Subject, server: Server, found: ClassClaims) -> Iterator[Finding]:
    # Without an elastic host there are no units, and general VMs need none there.
    if scheme_of(subject.policy).enrolls and not found.vm_class.pinned:
        return
    yield Finding.of(
        codes.NOT_CLAIMED,
        str(server),
        f"on {server.host}: {found}, and it lacks {_words(found.claims.lacking)}",
        _remedy(subject, server, found),
    )


def _remedy(subject: Subject, server: Server, found: ClassClaims) -> str:
    """Return the command that gives a server what it lacks."""
    host = subject.hosts_seen[server.host or ""]
    offered = subject.snapshot.provider_by_uuid[host.provider].inventories
    if found.claims.lacking.keys() <= offered.keys():
        return codes.HEAL
    scheme = scheme_of(subject.policy)
    if scheme.enrolls and not found.claims.held[scheme.resource_class]:
        return _enroll(server.host)
    return subject.resize(server)


def _enroll(host: str | None) -> str:
    """Return the command that gives units to the VMs of a host."""
    return f"openstack perfvm host enroll {quote(host or '')} --backfill"


def _words(amounts: Counter[str]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(amounts.items()))
