# SPDX-License-Identifier: Apache-2.0
"""``perfvm explain``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from nova_perfvm.changes.migrations.room import room_for
from nova_perfvm.cloud import candidates, errors
from nova_perfvm.diagnose import explain, ranking
from nova_perfvm.diagnose.explain import Row
from nova_perfvm.diagnose.explain.headline import headline, placed
from nova_perfvm.diagnose.verdicts import SchedulerSettings
from nova_perfvm.facts.demand import Request, RequestError
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.findings import CANNOT_TELL
from nova_perfvm.osc import dry_run
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import Table
from nova_perfvm.osc.formats import ranked
from nova_perfvm.osc.formats.both import Both
from nova_perfvm.osc.formats.explained import reasons_cell, remedy_cell
from nova_perfvm.osc.judging import LookingLister
from nova_perfvm.osc.requested import request_of
from nova_perfvm.policy import Policy
from nova_perfvm.printable import some_of
from nova_perfvm.rules import describe_cells

# More host names would not fit a table.
_MOST_NAMES: Final = 8
_COLUMNS: Final = ("Result", "Reason", "Count", "Hosts", "Detail", "Fix")


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
        policy, settings, snapshot = self.observed(parsed_args)
        request = self._request(parsed_args, snapshot)
        answer = dry_run.ask(self, parsed_args, snapshot)
        if answer is None:
            assert request is not None
            # The model of Nova, with Placement's own answer in a cloud.
            found = explain.explain(
                policy,
                snapshot,
                request,
                settings,
                host=parsed_args.host,
                offered=self._offered(parsed_args, request, settings, snapshot),
            )
        elif answer.refused:
            self.tell(f"no host would take it: Nova refuses it: {answer.refused}")
            self.exit_status = 1
            return _COLUMNS, []
        else:
            host = None if parsed_args.ranking else parsed_args.host
            found = explain.explain_scheduled(
                policy, snapshot, request, settings, answer, host=host
            )
            self.tell(*dry_run.details(answer) if parsed_args.long else ())
        self.tell(*found.notes)
        if parsed_args.nova_conf is None:
            self.tell(
                "assumed: nova-scheduler's options suit the policy (see --nova-conf)"
            )
        self.tell(headline(found))
        if request is not None and not (found.accepting or found.request_reasons):
            self.tell(*room_for(policy, snapshot, settings, request))
        self.exit_status = 0 if found.accepting else 1
        if found.accepting and found.unjudged:
            self.exit_status = CANNOT_TELL
        if answer is not None and parsed_args.count > 1:
            self.tell(placed(answer, parsed_args.count))
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
            self.tell(f"judged by Nova alone: {exc}")
            return None
        self.tell(*about)
        return found

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
            self.tell(f"Placement refuses the question itself: {exc}")
            return frozenset()


def _nodes(policy: Policy, request: Request | None, row: Row) -> Iterator[str]:
    if request is not None:
        yield from describe_cells(policy, request.facts, row.shown.view.facts)


def _row(row: Row) -> tuple[Any, ...]:
    code = row.shown.code
    return (
        "refused" if code else "accepted",
        code,
        len(row.hosts),
        Both(some_of(row.hosts, _MOST_NAMES), list(row.hosts)),
        reasons_cell(row.shown),
        remedy_cell(row.fix),
    )
