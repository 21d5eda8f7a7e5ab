# SPDX-License-Identifier: Apache-2.0
"""Commands that change a cloud: they show the changes, ask, and make them."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TextIO

from cliff.lister import Lister

from nova_perfvm.changes.steps import Left, Plan
from nova_perfvm.cloud import converge, live_hosts, policy_record
from nova_perfvm.cloud.apply import FORGOTTEN_S
from nova_perfvm.cloud.at_once import each
from nova_perfvm.cloud.errors import RefusedError
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.children import host_of_child
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import PolicyCommand, ask
from nova_perfvm.osc.output import SIGINT_EXIT, ProgressLine
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of

_WORKERS: Final = 4


class ChangingCommand(PolicyCommand):
    """A command that shows the changes that it would make, asks, and makes them."""

    auth_required = True
    arguments: opt.Arguments = (opt.CHANGING,)

    def checked_policy(self, parsed_args: argparse.Namespace) -> Policy:
        """Return the named policy after a comparison with the recorded one.

        :raises PerfVMError: when no policy is named; without --policy-changed, when the
            cloud records another one
        :raises CloudError: when the record cannot be read
        """
        policy = self.chosen_policy(parsed_args)
        seen = policy_record.read(self.cloud)
        self.compare_policy(parsed_args, policy, seen)
        return policy

    def agreed(self, parsed_args: argparse.Namespace, steps: Sequence[str]) -> bool:
        """Show the steps of a plan, and return whether to carry it out."""
        if not steps:
            self.say("nothing to do")
            return False
        if parsed_args.dry_run or not parsed_args.yes:
            self.say("\n".join(steps))
        if parsed_args.dry_run:
            return False
        return parsed_args.yes or ask(self.talk)

    @property
    def talk(self) -> TextIO:
        """Stream of progress messages: standard error if the command prints a table."""
        table = isinstance(self, Lister)
        stream: TextIO = self.app.stderr if table else self.app.stdout
        return stream

    def say(self, text: object) -> None:
        self.talk.write(f"{text}\n")
        self.talk.flush()

    def say_what_stays(self) -> None:
        """Print when --delete-children may delete the detached child providers."""
        children = live_hosts.detached_children(self.cloud)
        if children:
            hosts = sorted({host_of_child(child.name) or "" for child in children})
            self.say(
                f"{number_of(len(children), 'empty provider')} will stay until "
                f"nova-compute has forgotten them, in {FORGOTTEN_S // 60} minutes, or "
                "if [compute]resource_provider_association_refresh is 0 or above 300, "
                "when it has restarted; then run this command with --delete-children; "
                f"the providers are of {', '.join(hosts)}"
            )


class HostsCommand(ChangingCommand):
    """A changing command for several hosts, each with a plan of its own.

    An error of one host does not stop the work on the others.

    :cvar ended: the host's state after the command, such as "enrolled"
    """

    ended: str

    def names(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        found: Sequence[str] = parsed_args.hosts
        return found

    def planner(self, parsed_args: argparse.Namespace) -> converge.Planner:
        """Return the function that makes a host's plan."""
        raise NotImplementedError

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Plan, ask, and change the hosts; exit status 1 if a host was not changed."""
        self._planner = self.planner(parsed_args)
        self._left: dict[str, Sequence[Left]] = {}
        self._among = live_hosts.hypervisors(self.cloud)
        names = list(dict.fromkeys(self.names(parsed_args)))
        try:
            found = dict(self._each("looked at", self._look, names))
            # A host may be named twice, by its service and by its hypervisor.
            plans = dict(found[name] for name in names if name in found)
            hosts = [host for host, plan in plans.items() if plan.changes]
            for host in plans:
                if host not in hosts and not self._left[host]:
                    self.write(f"{host}: nothing to do\n")
            steps = [
                f"{h}: would {change}" for h in hosts for change in plans[h].changes
            ]
            if not steps and not self.exit_status:
                self.nothing_to_do(parsed_args)
            elif steps and self.agreed(parsed_args, steps):
                for host, made in self._each("changed", self._change, hosts):
                    ended = f"{self.ended} in part" if self._left[host] else self.ended
                    self.write(f"{host} is {ended}: {number_of(made, 'change')}\n")
            self._say_what_is_left()
            self.say_what_stays()
        except KeyboardInterrupt:
            return SIGINT_EXIT
        return 0

    def nothing_to_do(self, parsed_args: argparse.Namespace) -> None:
        """Handle a run in which no host needs a change."""

    def _plan(self, view: HostView) -> Plan:
        """Return a host's plan, and keep what it leaves for the final report."""
        made = self._planner(view)
        self._left[view.host] = made.left
        return made

    def _say_what_is_left(self) -> None:
        for host, left in sorted(self._left.items()):
            for one in left:
                self.exit_status = 1
                self.tell(f"{host}: {one.name} is left: {one.detail}")

    def _look(self, name: str) -> tuple[str, Plan]:
        """Return a host and its plan.

        :raises RefusedError: with the plan's refusals, and with what an earlier run
            that was cut off has left, which a refused run does not repair
        """
        view = live_hosts.read_host(self.cloud, name, self._among)
        plan = self._plan(view)
        if plan.refusals:
            raise RefusedError((*plan.refusals, *view.remains))
        return view.host, plan

    def _change(self, host: str) -> int:
        return converge.change_host(self.cloud, host, self._plan, among=self._among)

    def _each(
        self, what: str, work: Callable[[str], Any], items: Sequence[str]
    ) -> Iterator[tuple[str, Any]]:
        """Yield each item with its result of `work`; report PerfVMErrors instead."""
        outcomes = each(work, items, _WORKERS, self._interrupted)
        with contextlib.closing(outcomes), ProgressLine() as progress:
            for number, (item, future) in enumerate(outcomes, 1):
                progress.clear()
                try:
                    yield item, future.result()
                except PerfVMError as exc:
                    self.exit_status = 1
                    self.tell(f"{item}: {exc}")
                if number < len(items):
                    progress(f"hosts {what}", number, len(items))

    def _interrupted(self) -> None:
        self.app.stderr.write(
            "\ninterrupted: finishing the hosts that were begun; all others stay "
            "as they were\n"
        )
