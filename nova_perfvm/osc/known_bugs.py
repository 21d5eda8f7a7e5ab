# SPDX-License-Identifier: Apache-2.0
"""``perfvm known-bugs``: bugs of Nova that matter to pinned VMs, and whom they hit."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from nova_perfvm.diagnose.audit import Subject
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.known_bugs import (
    CloudFacts,
    Hit,
    KnownBug,
    Release,
    ReleaseError,
    all_bugs,
    hits,
    known_release,
    of_release,
)
from nova_perfvm.osc import snapshot as snapshots
from nova_perfvm.osc.base import Table, argument, one_of
from nova_perfvm.osc.collect import collected_argument, hypervisors
from nova_perfvm.osc.judging import JudgingLister

_LISTED: Final = ("Bug", "Title", "Since", "Fixed", "Moves", "Told", "Remedy")
_TO_DO: Final = ("Step", "When", "Host", "Server", "Bug", "Why", "Remedy")


def _release(text: str) -> Release:
    try:
        return known_release(text)
    except ReleaseError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from None


class ListBugs(JudgingLister):
    """List known bugs of Nova that matter to pinned VMs, or what to do about them.

    With --to: which servers and hosts of a cloud a release of Nova would hit, and
    what to do about each, in order; exits with 1 if there are any.
    """

    arguments = (
        one_of(
            argument(
                "--release",
                metavar="RELEASE",
                type=_release,
                help="list the bugs of one release, such as 33.0.2 or 33, only",
            ),
            argument(
                "--to",
                metavar="RELEASE",
                type=_release,
                help="look at the cloud, as if all hosts had this release, such as "
                "33.0.2 or 2026.1",
            ),
        ),
        one_of(snapshots.SNAPSHOT, snapshots.NOVA_DB),
        collected_argument("with --to: it shows how its VMs were started"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """List bugs, or look at a cloud."""
        target = parsed_args.to
        if target is not None:
            return self._to_do(parsed_args, target)
        if parsed_args.snapshot or parsed_args.from_nova_db or parsed_args.collected:
            raise PerfVMError("--snapshot, --from-nova-db and --collected are for --to")
        release = parsed_args.release
        found = all_bugs() if release is None else of_release(release)
        return _LISTED, [listed(bug) for bug in found]

    def _to_do(self, parsed_args: argparse.Namespace, target: Release) -> Table:
        policy = self.policy(parsed_args)
        collected = hypervisors(parsed_args, policy)
        seen = snapshots.look_by(self, parsed_args, policy)
        there = Subject(policy, seen, collected=collected).hypervisors
        found = in_order(CloudFacts(seen, there, target))
        for bug in of_release(target):
            if bug.rule is None or bug.rule.of_all:
                how = "hits what is migrated" if bug.rule else "cannot be told"
                self.warn(f"{bug.name}: {bug.title}: {how}: {bug.remedy}")
        self.exit_status = int(bool(found))
        return _TO_DO, list(_rows(found))


def listed(bug: KnownBug) -> tuple[Any, ...]:
    """Return the row of a bug in a list."""
    return (
        bug.number,
        bug.title,
        str(bug.since or ""),
        ", ".join(map(str, bug.fixed)),
        ", ".join(bug.moves),
        bug.told,
        bug.remedy,
    )


def in_order(facts: CloudFacts) -> list[tuple[KnownBug, Hit]]:
    """Return whom bugs hit in the order in which to help them.

    First what is to be done before the upgrade; then the hosts with the fewest, so
    that one is soon ready to take VMs of others.
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


def _rows(found: list[tuple[KnownBug, Hit]]) -> Iterator[tuple[Any, ...]]:
    for step, (bug, hit) in enumerate(found, 1):
        when = "after the upgrade of its host" if bug.when == "after" else "before"
        server = "" if hit.server is None else str(hit.server)
        why = f"{bug.title}: {hit.why}"
        yield step, when, hit.host, server, bug.number, why, bug.remedy_for(hit)
