# SPDX-License-Identifier: Apache-2.0
"""``host enroll`` and ``host unenroll`` for several hosts, a few at a time."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any, Final

from nova_perfvm.cloud import converge, observe
from nova_perfvm.cloud.at_once import each
from nova_perfvm.cloud.errors import RefusedError
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.osc.base import ask
from nova_perfvm.osc.snapshot import ProgressLine

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from nova_perfvm.changes.steps import Plan
    from nova_perfvm.cloud.at_once import Outcome
    from nova_perfvm.facts.elastic_host import ElasticHost
    from nova_perfvm.osc.elastic import HostsCommand

# What a shell shows of a program that Ctrl-C has ended.
_INTERRUPTED: Final = 130


def refusals_of(view: ElasticHost, plan: Plan) -> tuple[str, ...]:
    """Return what is in the way of a plan.

    Nothing then puts back what an earlier run has left, and so that is said, too.
    """
    return plan.refusals and (*plan.refusals, *view.remains)


class SeveralHosts:
    """Plans and changes hosts; what is wrong with one does not stop the others.

    :param among: the hypervisors of the cloud
    """

    def __init__(
        self, command: HostsCommand, parsed_args: argparse.Namespace, among: list[Any]
    ) -> None:
        """Know what to do; nothing is done yet."""
        self._command = command
        self._arguments = parsed_args
        self._among = among
        self._failed = 0

    def change(self, names: Sequence[str]) -> int:
        """Plan, ask, and change the hosts; return the exit status."""
        try:
            plans = self._plans(names)
            hosts = [host for host, plan in plans.items() if plan.changes]
            for host in plans.keys() - hosts:
                self._command.write(f"{host}: nothing to do\n")
            if hosts and self._agreed({host: plans[host] for host in hosts}):
                self._carry_out(hosts)
        except KeyboardInterrupt:
            return _INTERRUPTED
        return int(self._failed > 0)

    def _plans(self, names: Sequence[str]) -> dict[str, Plan]:
        """Return the plan of each host that has one, in the order of the names."""

        def look(name: str) -> tuple[str, Plan]:
            view = observe.view_host(self._command.cloud, name, self._among)
            plan = self._command.plan(view)
            refusals = refusals_of(view, plan)
            if refusals:
                raise RefusedError(refusals)
            return view.host, plan

        found = dict(self._each("looked at", look, names))
        planned = (found[name] for name in names if name in found)
        # A host may be named twice, by its service and by its hypervisor.
        return dict(planned)

    def _agreed(self, plans: dict[str, Plan]) -> bool:
        """Show the plans, and say whether to carry them out."""
        if self._arguments.dry_run or not self._arguments.yes:
            for host, plan in plans.items():
                lines = (f"{host}: would {change}\n" for change in plan.changes)
                self._command.write("".join(lines))
        if self._arguments.dry_run:
            return False
        return self._arguments.yes or ask(self._command.app.stdout)

    def _carry_out(self, hosts: Sequence[str]) -> None:
        def change(host: str) -> int:
            return self._command.carry_out(host, self._among, converge.silent)

        for host, made in self._each("changed", change, hosts):
            self._command.write(f"{host} is {self._command.ended}: {made} change(s)\n")

    def _each(
        self, what: str, work: Callable[[str], Any], items: Sequence[str]
    ) -> Iterator[tuple[str, Any]]:
        """Return what the work gave for each item; say of the others what was wrong."""
        progress = ProgressLine() if sys.stderr.isatty() else None
        outcomes = each(work, items, self._arguments.workers, self._interrupted)
        with contextlib.closing(outcomes):
            for number, outcome in enumerate(outcomes, 1):
                if progress is not None:
                    progress.clear()
                yield from self._result(outcome)
                if progress is not None and number < len(items):
                    progress(f"hosts {what}", number, len(items))

    def _result(self, outcome: Outcome[str, Any]) -> Iterator[tuple[str, Any]]:
        try:
            result = outcome.result()
        except PerfVMError as exc:
            self._failed += 1
            self._command.app.stderr.write(f"{outcome.item}: {exc}\n")
        else:
            yield outcome.item, result

    def _interrupted(self, begun: int, left: int) -> None:
        self._command.app.stderr.write(
            f"\ninterrupted: {left} host(s) are left as they are, and {begun} finished "
            "first; Ctrl-C again leaves those, too, for another run to finish\n"
        )
