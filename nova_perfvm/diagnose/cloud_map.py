# SPDX-License-Identifier: Apache-2.0
"""Prepare a cloud for the map page: hosts, their CPUs, owners and findings.

A page may have 1,000 hosts: therefore each verdict's text is in the document once, keys
are short, and sets of CPUs are text such as ``0-19``.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from nova_perfvm import cpuset
from nova_perfvm.diagnose.hosts import summarize
from nova_perfvm.diagnose.overview import Overview
from nova_perfvm.diagnose.verdicts import HostVerdict
from nova_perfvm.diagnose.words import words
from nova_perfvm.facts.snapshot import Server

Document = dict[str, Any]


def document(overview: Overview) -> Document:
    """Return the document for the map page, ready for JSON.

    Classes are numbered by their place in ``classes``; -1 means no class.  A verdict is
    0 if the host would take a server of the flavor, else the place of its text in
    ``texts``, counted from 1.
    """
    subject, findings = overview.subject, overview.report.findings
    policy, snapshot = subject.policy, subject.snapshot
    numbers = {vm_class.name: n for n, vm_class in enumerate(policy.classes)}
    places = _places(overview)
    by_host: dict[str | None, list[int]] = defaultdict(list)
    for number, finding in enumerate(findings):
        by_host[places.get(finding.subject)].append(number)
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
            "servers": [_server(overview, numbers, found) for found in view.servers],
            "findings": by_host[view.name],
        }
        for view, summary in zip(
            subject.views, summarize(policy, snapshot), strict=True
        )
    ]
    texts: dict[tuple[str, ...], int] = {}

    def text(verdict: HostVerdict) -> int:
        said = (verdict.code, *map(words, verdict.reasons))
        return 0 if verdict.accepted else texts.setdefault(said, len(texts) + 1)

    verdicts = [
        {
            "name": found.flavor,
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
        "findings": [
            [f.level.value, f.code, f.subject, f.observed, f.remedy] for f in findings
        ],
        "elsewhere": by_host[None],
        "texts": list(texts),
        "verdicts": verdicts,
    }


def _server(
    overview: Overview, numbers: Mapping[str, int], server: Server
) -> list[Any]:
    vm_class = overview.subject.class_of(server)
    return [
        server.id,
        server.name,
        numbers[vm_class.name] if vm_class else -1,
        server.flavor,
        server.vcpus,
        server.memory_mb,
        server.status + (f" ({server.task})" if server.task else ""),
        server.project,
        cpuset.format_cpus(server.pinned_cpus),
        sorted(server.pinned_nodes),
    ]


def _places(overview: Overview) -> dict[str, str]:
    """Return the host of each subject of findings; a host's own name wins."""
    places: dict[str, str] = {}
    for view in overview.subject.views:
        places |= {str(server): view.name for server in view.servers}
        places |= {provider.name: view.name for provider in view.tree}
    return places | {view.host: view.name for view in overview.subject.views}
