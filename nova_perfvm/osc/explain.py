# SPDX-License-Identifier: Apache-2.0
"""``perfvm explain``."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from cliff.columns import FormattableColumn

from nova_perfvm.changes.migrations import goals
from nova_perfvm.changes.migrations.model import command
from nova_perfvm.changes.migrations.planning import Planning, PlanOptions
from nova_perfvm.cloud import candidates, errors
from nova_perfvm.diagnose import explain, ranking
from nova_perfvm.diagnose.explain import Explanation, Row
from nova_perfvm.diagnose.verdicts import SchedulerSettings
from nova_perfvm.diagnose.words import in_words
from nova_perfvm.facts.demand import Request, RequestError
from nova_perfvm.facts.dry_run import SchedulerAnswer
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.findings import CANNOT_TELL
from nova_perfvm.osc import dry_run
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import Table
from nova_perfvm.osc.formats import ranked
from nova_perfvm.osc.formats.explained import Reasons, Remedy
from nova_perfvm.osc.judging import LookingLister
from nova_perfvm.osc.requested import request_of
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of, some_of
from nova_perfvm.rules import describe_cells

# A longer plan would take too long for a user who waits for a VM.
_MOST_MOVES: Final = 3
# More host names would not fit a table.
_MOST_NAMES: Final = 8
_COLUMNS: Final = ("Result", "Reason", "Count", "Hosts", "Detail", "Fix")


class Hosts(FormattableColumn[Sequence[str]]):
    """Names of hosts; a table shows the first few, JSON shows all."""

    def human_readable(self) -> str:
        return some_of(self._value, _MOST_NAMES)

    def machine_readable(self) -> list[str]:
        return list(self._value)


class Explain(LookingLister):
    """Say why no host takes a server, host by host, and what would help.

    Exits with 0 if a host would take the server, 1 if none would, and 3 if a host
    would, but a filter, a key or a figure was not judged.
    """

    keeps_rules = False
    arguments = (
        opt.one_of(
            opt.option("--flavor FLAVOR", "explain a new server of this flavor"),
            opt.option(
                "--server SERVER",
                "explain an existing server, such as a server in status ERROR",
            ),
            required=True,
        ),
        opt.option("--host HOST", "look at this host only"),
        *opt.REQUEST,
        *dry_run.NEW_SERVERS,
        opt.one_of(
            opt.flag(
                "--long", "one row for each host, with the arithmetic of its NUMA nodes"
            ),
            opt.flag(
                "--ranking",
                "order the hosts that would take the server as nova-scheduler does, "
                "with the points of each weigher, and the multiplier that would swap "
                "two neighbours (with --from-nova-db; with --host: that host and the "
                "first)",
            ),
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Judge all hosts; the exit status says whether one would take the server."""
        nova = parsed_args.from_nova_db
        # The reader of the database reports a missing file.
        if parsed_args.nova_conf is None and nova and Path(nova).is_file():
            parsed_args.nova_conf = nova
        policy = self.policy(parsed_args)
        settings = self.settings(parsed_args, policy)
        snapshot = self.snapshot(parsed_args, policy)
        request = self._request(parsed_args, snapshot)
        answer = dry_run.ask(self, parsed_args, snapshot)
        if answer is None:
            assert request is not None
            found = self._by_model(parsed_args, policy, settings, snapshot, request)
        elif answer.refused:
            self.remark([f"no host would take it: Nova refuses it: {answer.refused}"])
            self.exit_status = 1
            return _COLUMNS, []
        else:
            host = None if parsed_args.ranking else parsed_args.host
            found = explain.explain_scheduled(
                policy, snapshot, request, settings, answer, host=host
            )
            self.remark(dry_run.details(answer) if parsed_args.long else ())
        self.remark(found.notes)
        if parsed_args.nova_conf is None:
            self.remark(
                ["nova-scheduler is taken to be set up for the policy: see --nova-conf"]
            )
        self.remark([headline(found)])
        if request is not None and not (found.accepting or found.request_reasons):
            self.remark(_offered_plan(policy, snapshot, settings, request))
        self.exit_status = 0 if found.accepting else 1
        if found.accepting and found.unjudged:
            self.exit_status = CANNOT_TELL
        if answer is not None and parsed_args.count > 1:
            self.remark([_placed(answer, parsed_args.count)])
            self.exit_status = int(len(answer.placed) < parsed_args.count)
        if answer is not None and parsed_args.ranking and found.accepting:
            order = ranking.ranking(answer, [v.view for v in found.verdicts])
            whole = parsed_args.formatter != "table"
            return ranked.table(order, parsed_args.host, whole=whole)
        if not parsed_args.long:
            return _COLUMNS, [_row(row) for row in found.rows()]
        return (*_COLUMNS, "NUMA Nodes"), [
            (*_row(row), "\n".join(_nodes(policy, request, row)))
            for row in found.by_host()
        ]

    def _request(
        self, parsed_args: argparse.Namespace, snapshot: Snapshot
    ) -> Request | None:
        """Return the request; None where only Nova's scheduler can build it."""
        try:
            found, about = request_of(parsed_args, snapshot, parsed_args.server)
        except RequestError as exc:
            if parsed_args.from_nova_db is None:
                raise
            self.remark([f"judged by Nova alone: {exc}"])
            return None
        self.remark(about)
        return found

    def _by_model(
        self,
        parsed_args: argparse.Namespace,
        policy: Policy,
        settings: SchedulerSettings,
        snapshot: Snapshot,
        request: Request,
    ) -> Explanation:
        """Judge hosts by the model of Nova, with Placement's own answer in a cloud."""
        return explain.explain(
            policy,
            snapshot,
            request,
            settings,
            host=parsed_args.host,
            offered=self._offered(parsed_args, request, settings, snapshot),
        )

    def _offered(
        self,
        parsed_args: argparse.Namespace,
        request: Request,
        settings: SchedulerSettings,
        snapshot: Snapshot,
    ) -> frozenset[str] | None:
        """Return the hosts that Placement offers; None where a snapshot is judged."""
        if parsed_args.snapshot is not None:
            return None
        try:
            return candidates.offered(
                self.cloud, request, settings, snapshot.aggregates
            )
        except errors.CloudError as exc:
            if exc.status != 400:
                raise
            # For example, nobody has created a trait; Nova gets the same answer.
            self.remark([f"Placement refuses the question itself: {exc}"])
            return frozenset()


def _placed(answer: SchedulerAnswer, count: int) -> str:
    """Return a line with the hosts on which `count` new servers would be placed."""
    hosts = Counter(answer.placed)
    where = ", ".join(f"{number} on {host}" for host, number in hosts.items())
    return f"{len(answer.placed)} of {count} servers would be placed: {where or 'none'}"


def headline(found: Explanation) -> str:
    """Return a line with the number of hosts that would take the server, or a fix."""
    total, taking = len(found.verdicts), len(found.accepting)
    if taking:
        said = f"{taking} of {number_of(total, 'host')} would take it"
        unjudged = ", ".join(found.unjudged)
        return f"{said}, as far as seen: {unjudged} not judged" if unjudged else said
    if found.request_reasons:
        return (
            "no host would take it: the request is not of its class: "
            f"{in_words(found.request_reasons)}"
        )
    if not total:
        return "no host would take it: there are no compute hosts"
    best, *_ = found.rows()
    remedy = f"smallest fix found: {best.fix}" if best.fix else "no fix found"
    return f"none of {number_of(total, 'host')} would take it; {remedy}"


def _offered_plan(
    policy: Policy, snapshot: Snapshot, settings: SchedulerSettings, request: Request
) -> Iterator[str]:
    """Yield the commands of migrations that make room for a VM, after a summary."""
    options = PlanOptions(max_moves=_MOST_MOVES)
    planning = Planning(policy, snapshot, settings.strict, options)
    plan = goals.free(planning, request, 1)
    if not plan.wanted:
        # With --host the request fits, but on another host than HOST.
        yield "there is room for it on another host"
    elif not plan.complete:
        yield f"no plan of {_MOST_MOVES} migrations or fewer makes room"
    else:
        yield (
            f"room by {number_of(len(plan.moves), 'migration')} (plan free looks for "
            "more, and carries them out with --execute):"
        )
        for move in plan.moves:
            yield from command(move).splitlines()


def _nodes(policy: Policy, request: Request | None, row: Row) -> Iterator[str]:
    if request is not None:
        yield from describe_cells(policy, request.facts, row.shown.view.facts)


def _row(row: Row) -> tuple[Any, ...]:
    code = row.shown.code
    return (
        "refused" if code else "accepted",
        code,
        len(row.hosts),
        Hosts(row.hosts),
        Reasons(row.shown),
        Remedy(row.fix),
    )
