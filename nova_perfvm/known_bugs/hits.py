# SPDX-License-Identifier: Apache-2.0
"""Find the servers and hosts of a cloud that known bugs hit."""

from __future__ import annotations

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
