# SPDX-License-Identifier: Apache-2.0
"""Servers as Nova has them, compared with what was collected on their hosts.

What has to hold is the check :mod:`~nova_perfvm.measure.checks.host.three_way`; here
is which host each server is on, and what was collected there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import ComputeHost, Server, ServerCell
from nova_perfvm.findings import CheckFindings, Finding, Level
from nova_perfvm.measure.checks import nova_view
from nova_perfvm.measure.checks.check import failed, skipped
from nova_perfvm.measure.checks.host import three_way
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.checks.nova_view import NovaView
from nova_perfvm.measure.checks.report import CheckReport
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.policy import Policy


@dataclass(frozen=True)
class Question:
    """What is asked, and what Nova answered.

    :ivar servers: those that are asked for, or all on the host, with their topologies
    :ivar source: what told them
    :ivar asked_at: when, ISO 8601, UTC
    :ivar host: the host all of whose pinned servers are asked for, if so
    """

    servers: tuple[Server, ...]
    source: str
    asked_at: str
    host: str | None = None

    @cached_property
    def hosts(self) -> dict[str, ComputeHost]:
        """The hosts that the servers are on, by the service's name."""
        found = {
            server.host: ComputeHost(server.host, server.node or server.host, "", "")
            for server in self.servers
            if server.host is not None
        }
        if self.host is not None:
            found.setdefault(self.host, ComputeHost(self.host, self.host, "", ""))
        return found

    def __str__(self) -> str:
        """Say what is asked for, and where that is."""
        if self.host is not None:
            return f"the servers asked for are on {self.host}"
        return ", ".join(f"{s.name} is on {s.host or 'no host'}" for s in self.servers)


def check(
    question: Question, files: Mapping[str, Collected], policy: Policy
) -> CheckReport:
    """Compare servers with what was collected on hosts.

    :param files: by the file that has it
    :raises PerfVMError: when a file is of a host that nobody asks for
    """
    looked = _Looked(question, policy)
    for path, collected in files.items():
        looked.add(path, collected)
    rule = three_way.CHECK._replace(find=_find)
    found = CheckFindings(rule.title, tuple(rule.findings(looked)))
    hosts = ", ".join(sorted(question.hosts))
    return CheckReport((found,), question.asked_at, "server", hosts)


@dataclass(frozen=True)
class _Looked:
    """The question, and what was collected on hosts.

    :ivar subjects: by the name of the compute service
    :ivar others: of hosts that no server is on by Nova, though one ran there
    """

    question: Question
    policy: Policy
    subjects: dict[str, HostSubject] = field(default_factory=dict)
    others: list[HostSubject] = field(default_factory=list)

    def add(self, path: str, collected: Collected) -> None:
        """Find out which host was looked at.

        :raises PerfVMError: when it is not one that is asked for, or is there twice
        """
        question = self.question
        found = nova_view.called(question.hosts.values(), collected.hostname)
        if len(found) > 1:
            names = ", ".join(host.host for host in found)
            message = f"{path}: {collected.hostname} can be each of {names}"
            raise PerfVMError(message)
        if not found:
            other = HostSubject(collected, self.policy)
            ran = any(_domain(other, server) for server in question.servers)
            if question.hosts and not ran:
                message = (
                    f"{path} was collected on {collected.hostname}, and {question}: "
                    "collect there"
                )
                raise PerfVMError(message)
            self.others.append(other)
            return
        (host,) = found
        if host.host in self.subjects:
            message = f"{path}: there is another file of {host.host}: give the newer"
            raise PerfVMError(message)
        here = {s.id: s for s in question.servers if s.host == host.host}
        view = NovaView(host, here, source=f"{question.source} at {question.asked_at}")
        self.subjects[host.host] = HostSubject(collected, self.policy, view)


def _find(looked: _Looked) -> Iterator[Finding]:
    """Compare each server, and look for VMs that Nova does not have there."""
    question = looked.question
    for server in question.servers:
        for other in looked.others:
            domain = _domain(other, server)
            # While it migrates it may run on two hosts.
            if domain is not None and server.known and server.task is None:
                yield _elsewhere(other, domain, server, question)
        if question.host is None or _counts(looked, server):
            try:
                yield _of_server(looked, server)
            except NotReadError as exc:
                yield skipped(str(server), exc.reason, exc.place)
    if question.host is None:
        return
    subject = looked.subjects.get(question.host)
    if subject is not None and subject.nova is not None:
        yield from three_way.strangers(subject, subject.nova)
    if not any(server.pinned_cpus for server in question.servers):
        reason = "Nova has no server there that owns CPUs"
        yield skipped(question.host, reason, question.source)


def _counts(looked: _Looked, server: Server) -> bool:
    """Return whether a server is among those of a host that are asked for."""
    subject = looked.subjects.get(server.host or "")
    if subject is None:
        return bool(server.pinned_cpus)
    try:
        return three_way.owns_cpus(subject, server)
    except NotReadError:
        return bool(server.pinned_cpus)


def _domain(subject: HostSubject, server: Server) -> Domain | None:
    """Return the domain of a server that runs; none where nobody can tell."""
    try:
        return three_way.domain_of(subject, server)
    except NotReadError:
        return None


def _of_server(looked: _Looked, server: Server) -> Finding:
    source = looked.question.source
    if not server.known:
        reason = "Nova cannot reach its cell, and does not tell where it is"
        return skipped(server.id, reason, source)
    if server.host is None:
        fault = f" ({server.fault})" if server.fault else ""
        reason = f"Nova has it on no host: {server.status}{fault}{_busy(server)}"
        return skipped(str(server), reason, source)
    subject = looked.subjects.get(server.host)
    if subject is None or subject.nova is None:
        if not server.pinned_cpus:
            return skipped(str(server), three_way.NOT_PINNED, source)
        return _nova_alone(server, source)
    found = three_way.of_server(subject, subject.nova, server)
    return found._replace(subject=str(server))


def _nova_alone(server: Server, source: str) -> Finding:
    """Return what Nova says of a server on whose host nobody has looked."""
    has = ", ".join(_shown(cell) for cell in server.cells or () if cell.cpu_pinning)
    return Finding(
        "",
        Level.UNKNOWN,
        str(server),
        f"Nova has {has}{_busy(server)}; libvirt and the kernel were not asked, as "
        f"nothing is given that was collected on {server.host}",
        three_way.AGREEMENT,
        source,
        f"on {server.host}: nova-perfvm host collect --output {server.host}.json; "
        f"then add --collected {server.host}.json",
    )


def _busy(server: Server) -> str:
    return f", and is busy with it: {server.task}" if server.task else ""


def _shown(cell: ServerCell) -> str:
    """Return where one NUMA node of a server is, each vCPU with its CPU."""
    pairs = " ".join(f"{v}:{c}" for v, c in sorted(cell.cpu_pinning.items()))
    return (
        f"vCPUs {format_cpus(cell.cpu_pinning)} on CPUs "
        f"{format_cpus(cell.cpu_pinning.values())} of NUMA node {cell.host_node} "
        f"({pairs})"
    )


def _elsewhere(
    subject: HostSubject, domain: Domain, server: Server, question: Question
) -> Finding:
    """Return that a server runs where Nova does not have it."""
    collected = subject.collected
    there, source = collected.hostname, f"{question.source}; {domain.source}"
    changed = three_way.changed_since(collected, server)
    where = f"on {server.host}" if server.host else f"on no host ({server.status})"
    ran = f"libvirt ran it on {there}, and Nova has it {where}"
    if changed:
        reason = f"{ran}: it may have moved, as {changed}: collect once more"
        return skipped(str(server), reason, source)
    return failed(
        str(server),
        f"to run {where}, where Nova has it",
        ran,
        source,
        f"if it has moved since {collected.taken_at}, collect once more; else a "
        f"domain was left behind on {there}: shut it down there: virsh destroy "
        f"{domain.name}",
    )
