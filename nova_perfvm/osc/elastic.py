# SPDX-License-Identifier: Apache-2.0
"""``perfvm host enroll``, ``host unenroll``, ``preflight`` and ``rollback``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.changes.unenroll import plan_unenroll
from nova_perfvm.cloud import converge, observe
from nova_perfvm.cloud import preflight as gathering
from nova_perfvm.cloud.at_once import MOST_WORKERS
from nova_perfvm.cloud.errors import RefusedError
from nova_perfvm.cloud.rollback import plan_rollback, rollback
from nova_perfvm.diagnose.preflight import preflight
from nova_perfvm.osc.base import (
    OfflineCommand,
    ask,
    changing_arguments,
    cloud_of,
    file_path,
    policy_argument,
)
from nova_perfvm.osc.checks import ChecksLister, Table
from nova_perfvm.osc.several_hosts import SeveralHosts, refusals_of
from nova_perfvm.policy import loader

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from nova_perfvm.changes.steps import Change, Plan
    from nova_perfvm.cloud.converge import Tell
    from nova_perfvm.facts.elastic_host import ElasticHost


class ChangingCommand(OfflineCommand):
    """A command that shows what it would change, asks, and changes it."""

    auth_required = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add ``--dry-run`` and ``--yes``."""
        parser = super().get_parser(prog_name)
        changing_arguments(parser)
        return parser

    @property
    def cloud(self) -> Any:
        """The cloud that the client's options name."""
        return cloud_of(self.app)

    def agreed(
        self,
        parsed_args: argparse.Namespace,
        changes: Sequence[Change],
        refusals: tuple[str, ...],
    ) -> bool:
        """Show a plan, and say whether to carry it out.

        :raises RefusedError: when something is in the way
        """
        if refusals:
            raise RefusedError(refusals)
        if not changes:
            self.write("nothing to do\n")
            return False
        if parsed_args.dry_run or not parsed_args.yes:
            self.write("".join(f"would {change}\n" for change in changes))
        if parsed_args.dry_run:
            return False
        return parsed_args.yes or ask(self.app.stdout)

    def tell(self, change: Change) -> None:
        """Return what is being done."""
        self.write(f"{change}\n")


class HostsCommand(ChangingCommand):
    """A changing command for some hosts, each with a plan of its own.

    :cvar ended: what a host is afterwards
    """

    ended: str

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the hosts, and how many at a time."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "hosts", nargs="+", metavar="HOST", help="compute hosts, by name"
        )
        parser.add_argument(
            "--workers",
            type=int,
            choices=range(1, MOST_WORKERS + 1),
            default=4,
            metavar="N",
            help=f"how many hosts to change at a time, {MOST_WORKERS} at most "
            "(default: %(default)s)",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Plan, ask, and change; 1 if a host of several was not changed as wanted."""
        self.options = self.read(parsed_args)
        among = observe.hypervisors(self.cloud)
        names = list(dict.fromkeys(parsed_args.hosts))
        if len(names) > 1:
            return SeveralHosts(self, parsed_args, among).change(names)
        view = observe.view_host(self.cloud, names[0], among)
        plan = self.plan(view)
        if self.agreed(parsed_args, plan.changes, refusals_of(view, plan)):
            self.carry_out(view.host, among, self.tell)
            self.write(f"{view.host} is {self.ended}\n")
        return 0

    def read(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return what the command line says, for the two below."""
        del parsed_args
        return {}

    def plan(self, view: ElasticHost) -> Plan:
        """Return what is to be done with a host."""
        raise NotImplementedError

    def carry_out(self, host: str, among: list[Any], tell: Tell) -> int:
        """Change a host; return the number of changes."""
        raise NotImplementedError


class EnrollHost(HostsCommand):
    """Make compute hosts elastic, or repair such as are."""

    ended = "enrolled"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add slots, aggregate and backfill."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--slots",
            type=int,
            metavar="N",
            help="high-performance VMs that fit each host, 0 for general VMs only "
            "(default: what it has, or what its CPUs say)",
        )
        parser.add_argument(
            "--aggregate",
            metavar="NAME",
            help="isolated aggregate for the host, unless it is in one for this "
            "policy (default: perfvm-elastic-M, M the number of its children)",
        )
        parser.add_argument(
            "--backfill",
            action="store_true",
            help="give VMs that run on the host the units that they should have; "
            "nova-compute is disabled meanwhile",
        )
        return parser

    def read(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return the options of a plan, and the policy."""
        names = ("slots", "aggregate", "backfill")
        self._policy = self.policy(parsed_args)
        return {name: getattr(parsed_args, name) for name in names}

    def plan(self, view: ElasticHost) -> Plan:
        """Plan to enroll."""
        return plan_enroll(self._policy, view, **self.options)

    def carry_out(self, host: str, among: list[Any], tell: Tell) -> int:
        """Enroll."""
        return converge.enroll(
            self.cloud, self._policy, host, **self.options, tell=tell, among=among
        )


class UnenrollHost(HostsCommand):
    """Make elastic hosts ordinary ones again."""

    ended = "no longer enrolled"

    def plan(self, view: ElasticHost) -> Plan:
        """Plan to unenroll."""
        return plan_unenroll(view)

    def carry_out(self, host: str, among: list[Any], tell: Tell) -> int:
        """Unenroll."""
        return converge.unenroll(self.cloud, host, tell=tell, among=among)


class Rollback(ChangingCommand):
    """Unenroll all hosts, and remove what they had in common; VMs run on."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add ``--strip-units``."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--strip-units",
            action="store_true",
            help="take the units out of the allocations of running VMs; nothing "
            "then keeps the classes apart",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Plan, warn, ask, and roll back; 1 if something remained."""
        strip = parsed_args.strip_units
        plan = plan_rollback(self.cloud, strip=strip)
        for warning in (*plan.warnings, *plan.kept):
            self.app.stderr.write(f"warning: {warning}\n")
        remained: list[str] = []
        if self.agreed(parsed_args, plan.changes, plan.refusals):
            _, remained = rollback(self.cloud, strip=strip, tell=self.tell)
        for reason in remained:
            self.app.stderr.write(f"remains: {reason}\n")
        return 1 if remained else 0


class Preflight(ChecksLister):
    """Look for what would break the guarantee of elastic hosts.

    Exits with 0 if all is well, 1 for warnings and what is unknown, 2 for
    failures, 3 if it could not look.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the hosts and the files."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "hosts", nargs="*", metavar="HOST", help="hosts that are to be enrolled"
        )
        policy_argument(parser)
        parser.add_argument(
            "--nova-conf",
            type=file_path,
            metavar="FILE",
            help="copy of nova-scheduler's nova.conf",
        )
        parser.add_argument(
            "--placement-conf",
            type=file_path,
            metavar="FILE",
            help="placement.conf; its database is asked how it isolates transactions",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Look at the cloud and judge it."""
        view = gathering.view_cloud(
            cloud_of(self.app),
            frozenset(parsed_args.hosts),
            parsed_args.nova_conf,
            parsed_args.placement_conf,
        )
        results = preflight(loader.load(parsed_args.policy), view)
        return self.listed(results)
