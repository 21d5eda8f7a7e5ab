# SPDX-License-Identifier: Apache-2.0
"""Find the servers and hosts of a cloud that known bugs hit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from nova_perfvm.known_bugs.facts import CloudFacts, Hit
from nova_perfvm.known_bugs.model import KnownBug, all_bugs
from nova_perfvm.known_bugs.releases import Release


def of_release(release: Release) -> tuple[KnownBug, ...]:
    return tuple(bug for bug in all_bugs() if bug.affects(release))


def hits(facts: CloudFacts) -> Iterator[tuple[KnownBug, Hit]]:
    """Yield each bug with the servers or hosts that it hits, host by host.

    Hosts whose release is unknown are left out.
    """
    for host in facts.snapshot.hosts:
        release = facts.judged(host)
        for bug in of_release(release) if release else ():
            if bug.told_by is not None and bug.rule is not None:
                for hit in bug.rule.find(facts, host, bug.told_by.parameters):
                    yield bug, hit


def in_order(facts: CloudFacts) -> list[tuple[KnownBug, Hit]]:
    """Return the servers and hosts that bugs hit, in the order of the remedies.

    Remedies before the upgrade come first; then hosts with the fewest hits, so that a
    host is soon ready to take the VMs of others.
    """
    found = [(bug, hit) for bug, hit in hits(facts) if bug.rule and not bug.rule.of_all]
    of_host = Counter(hit.host for _, hit in found)
    return sorted(
        found,
        key=lambda one: (
            one[0].when == "after",
            of_host[one[1].host],
            one[1].host,
            str(one[1].server or ""),
            -one[0].number,
        ),
    )
