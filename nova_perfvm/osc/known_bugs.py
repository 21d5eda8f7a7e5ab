# SPDX-License-Identifier: Apache-2.0
"""``known-bugs``: Nova's bugs that affect pinned VMs, and the servers that they hit."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, Final

from nova_perfvm.cloud.host_nodes import hypervisors
from nova_perfvm.diagnose.audit import Subject
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.known_bugs import (
    CloudFacts,
    Hit,
    KnownBug,
    Release,
    ReleaseError,
    all_bugs,
    in_order,
    known_release,
    of_release,
)
from nova_perfvm.osc import options as opt
from nova_perfvm.osc import snapshot as snapshots
from nova_perfvm.osc.base import Table
from nova_perfvm.osc.judging import JudgingLister

_LISTED: Final = ("Bug", "Title", "Since", "Fixed", "Moves", "Told", "Remedy")
_TO_DO: Final = ("Step", "When", "Host", "Server", "Bug", "Why", "Remedy")


def _release(text: str) -> Release:
    try:
        return known_release(text)
    except ReleaseError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from None


class ListBugs(JudgingLister):
    """List known bugs of Nova that affect pinned VMs, or the servers that they hit.

    With --to: list the servers and hosts of a cloud that bugs of that release would
    hit, and a remedy for each, in order; exit with 1 if there are any.
    """

    arguments = (
        opt.one_of(
            opt.option(
                "--release RELEASE",
                "list only the bugs of this release, such as 33.0.2 or 33",
                type=_release,
            ),
            opt.option(
                "--to RELEASE",
                "judge the cloud after an upgrade of every host to this release, "
                "such as 33.0.2 or 2026.1",
                type=_release,
            ),
        ),
        opt.SOURCE,
        opt.collected("with --to, to see how the host's VMs were started"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        target = parsed_args.to
        if target is not None:
            return self._to_do(parsed_args, target)
        if parsed_args.snapshot or parsed_args.from_nova_db or parsed_args.collected:
            raise PerfVMError("--snapshot, --from-nova-db and --collected need --to")
        release = parsed_args.release
        found = all_bugs() if release is None else of_release(release)
        return _LISTED, [listed(bug) for bug in found]

    def _to_do(self, parsed_args: argparse.Namespace, target: Release) -> Table:
        policy = self.policy(parsed_args)
        collected = hypervisors(parsed_args.collected, policy)
        seen = snapshots.look_by(self, parsed_args, policy)
        there = Subject(policy, seen, collected=collected).hypervisors
        found = in_order(CloudFacts(seen, there, target))
        for bug in of_release(target):
            if bug.rule is None or bug.rule.of_all:
                how = "hits every VM that migrates" if bug.rule else "not detectable"
                self.warn(f"{bug.name}: {bug.title}: {how}: {bug.remedy}")
        self.exit_status = int(bool(found))
        return _TO_DO, list(_rows(found))


def listed(bug: KnownBug) -> tuple[Any, ...]:
    return (
        bug.number,
        bug.title,
        str(bug.since or ""),
        ", ".join(map(str, bug.fixed)),
        ", ".join(bug.moves),
        bug.told,
        bug.remedy,
    )


def _rows(found: list[tuple[KnownBug, Hit]]) -> Iterator[tuple[Any, ...]]:
    for step, (bug, hit) in enumerate(found, 1):
        when = "after the upgrade of its host" if bug.when == "after" else "before"
        server = "" if hit.server is None else str(hit.server)
        why = f"{bug.title}: {hit.why}"
        yield step, when, hit.host, server, bug.number, why, bug.remedy_for(hit)
