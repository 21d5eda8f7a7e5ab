# SPDX-License-Identifier: Apache-2.0
"""A cloud as a page draws it: hosts, their CPUs, who owns them, what is wrong.

The document is compact, as a page of 1,000 hosts carries it: what repeats is in a
list and named by its number.  Keys are short words, sets of CPUs are text such as
``0-19``.
"""

from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

from nova_perfvm import cpuset
from nova_perfvm.diagnose.explain import words
from nova_perfvm.diagnose.explain.verdicts import HostVerdict
from nova_perfvm.diagnose.hosts import summarize
from nova_perfvm.diagnose.overview import Overview
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Server
from nova_perfvm.findings import Finding

Document = dict[str, Any]

# The code, and the numbers of the lines that say it.
Text = tuple[str, tuple[int, ...]]

_T = TypeVar("_T", bound=Hashable)


class _Numbered(Generic[_T]):
    """Values in a list, each once."""

    def __init__(self) -> None:
        self.numbers: dict[_T, int] = {}

    def __call__(self, value: _T) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    @property
    def values(self) -> list[_T]:
        return list(self.numbers)


def document(overview: Overview) -> Document:
    """Return what a page shows, ready for JSON.

    Numbers of classes, flavors, statuses, projects and lines are those of the lists
    of that name; -1 is no class.  A verdict is 0 where a host would take a server of
    the flavor, and else the number of its text, from 1 on.
    """
    subject = overview.subject
    policy, snapshot = subject.policy, subject.snapshot
    numbers = {vm_class.name: n for n, vm_class in enumerate(policy.classes)}
    flavors, statuses, projects = (_Numbered[str]() for _ in range(3))

    def server(found: Server) -> list[Any]:
        vm_class = subject.class_of(found)
        return [
            found.id,
            found.name,
            numbers[vm_class.name] if vm_class else -1,
            flavors(found.flavor),
            found.vcpus,
            found.memory_mb,
            statuses(found.status + (f" ({found.task})" if found.task else "")),
            projects(found.project),
            cpuset.format_cpus(found.pinned_cpus),
            sorted(_nodes(found)),
        ]

    findings = [_finding(finding) for finding in overview.report.findings]
    by_host, elsewhere = _placed(overview)
    summaries = summarize(policy, snapshot)
    hosts = [
        {
            "name": view.name,
            "host": view.host,
            "state": view.state,
            "why": view.compute.disabled_reason or "",
            "mode": summary.mode,
            "zone": view.compute.availability_zone,
            "aggregates": [a.name for a in view.aggregates],
            "classes": list(summary.classes),
            "source": view.compute.cells_source,
            "shape": str(view.compute.shape or ""),
            "cells": [
                [
                    cell.id,
                    cpuset.format_cpus(cell.cpuset),
                    cpuset.format_cpus(cell.pcpuset),
                    cpuset.format_cpus(cell.pinned_cpus),
                    cell.memory_mb,
                    cell.memory_usage_mb,
                ]
                for cell in view.facts.cells
            ],
            "slots": [
                [
                    numbers[slots.class_name],
                    slots.total,
                    slots.used,
                    slots.free,
                    [cpuset.format_cpus(cpus) for cpus in slots.free_cpus],
                ]
                for slots in overview.slots_by_host[view.name]
                if slots.total or slots.free
            ],
            "beside": cpuset.format_cpus(_beside(overview, view)),
            "owned": int(_owned_alone(overview, view)),
            "servers": [server(found) for found in view.servers],
            "findings": by_host.get(number, []),
        }
        for number, (view, summary) in enumerate(
            zip(overview.views, summaries, strict=True)
        )
    ]
    lines, texts = _Numbered[str](), _Numbered[Text]()

    def text(verdict: HostVerdict) -> int:
        if verdict.accepted:
            return 0
        said = tuple(lines(words(reason)) for reason in verdict.reasons)
        return texts((verdict.code, said)) + 1

    verdicts = [
        {
            "name": found.flavor,
            "class": found.class_name,
            "note": found.note,
            "hosts": [text(verdict) for verdict in found.verdicts],
        }
        for found in overview.flavors
    ]
    return {
        "taken_at": snapshot.taken_at,
        "policy": policy.digest,
        "gaps": list(snapshot.gaps),
        "classes": [[c.name, int(c.pinned)] for c in policy.classes],
        "hosts": hosts,
        "placeless": sum(s.host is None for s in snapshot.servers),
        "flavors": flavors.values,
        "statuses": statuses.values,
        "projects": projects.values,
        "findings": findings,
        "elsewhere": elsewhere,
        "lines": lines.values,
        "texts": texts.values,
        "verdicts": verdicts,
    }


def _nodes(server: Server) -> set[int]:
    nodes = (cell.host_node for cell in server.cells or () if cell.cpu_pinning)
    return {node for node in nodes if node is not None}


def _owned_alone(overview: Overview, view: HostView) -> bool:
    """Return whether a class that shares its host with no other runs there.

    On a host without cpu sets nobody shares the CPUs that such servers leave.
    """
    classes = map(overview.subject.class_of, view.servers)
    return any(c is not None and c.pinned and c.exclusive == "host" for c in classes)


def _beside(overview: Overview, view: HostView) -> set[int]:
    """Return the threads of cores that are taken whole, or would be, beside the CPUs.

    A vCPU of a class with ``smt: cores`` owns one thread, and nobody gets the others.
    """
    subject = overview.subject
    taken: set[int] = set()
    for server in view.servers:
        vm_class = subject.class_of(server)
        if vm_class is not None and vm_class.smt == "cores":
            taken |= server.pinned_cpus
    for slots in overview.slots_by_host[view.name]:
        if subject.policy.by_name[slots.class_name].smt == "cores":
            taken = taken.union(*slots.free_cpus)
    cores = (core for cell in view.facts.cells for core in cell.siblings)
    return {cpu for core in cores if not taken.isdisjoint(core) for cpu in core - taken}


def _finding(finding: Finding) -> list[str]:
    return [
        finding.level.value,
        finding.code,
        finding.subject,
        finding.observed,
        finding.remedy,
    ]


def _placed(overview: Overview) -> tuple[dict[int, list[int]], list[int]]:
    """Return the findings about each host, and those about none, by their numbers."""
    places = dict(_places(overview))
    by_host: dict[int, list[int]] = {}
    elsewhere = []
    for number, finding in enumerate(overview.report.findings):
        host = places.get(finding.subject)
        if host is None:
            elsewhere.append(number)
        else:
            by_host.setdefault(host, []).append(number)
    return by_host, elsewhere


def _places(overview: Overview) -> Iterator[tuple[str, int]]:
    """Yield what findings are about, and the number of its host; hosts come last."""
    for number, view in enumerate(overview.views):
        for server in view.servers:
            yield str(server), number
        for provider in view.tree:
            yield provider.name, number
    for number, view in enumerate(overview.views):
        yield view.host, number
