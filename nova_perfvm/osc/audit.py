# SPDX-License-Identifier: Apache-2.0
"""``perfvm audit``."""

from __future__ import annotations

import argparse

from nova_perfvm.changes.heal import hosts_to_heal
from nova_perfvm.cloud import heal, live_hosts
from nova_perfvm.cloud.host_nodes import hypervisors
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import AuditReport, Subject
from nova_perfvm.diagnose.audit.subject import STUCK_AFTER_MIN
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.osc import options as opt
from nova_perfvm.osc import snapshot as snapshots
from nova_perfvm.osc.base import Table, options_of
from nova_perfvm.osc.changing import ChangingCommand
from nova_perfvm.osc.reports import FORMATS, FindingsLister
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of


class Audit(FindingsLister, ChangingCommand):
    """Find violations of the policy in a cloud, whatever caused them.

    Changes nothing without --heal. Exits with 0 if the audit finds nothing, 1 for
    warnings, 2 for failures.
    """

    formatter_namespace = FORMATS
    arguments = (
        opt.SOURCE,
        opt.PLACEMENT_CONF,
        opt.collected("compared with Nova's view of that host (may be repeated)"),
        opt.option(
            "--stuck-after MINUTES",
            "report a server as stuck when a task of Nova has taken MINUTES "
            "(default: %(default)s)",
            type=int,
            default=STUCK_AFTER_MIN,
        ),
        opt.STRICT,
        opt.flag(
            "--heal",
            "restore lost parts of servers' allocations in Placement, one server after "
            "the other, then audit again; change nothing else",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Audit the cloud; with --heal restore lost allocations, and audit again."""
        if parsed_args.heal:
            if parsed_args.snapshot is not None:
                raise PerfVMError("--heal is for a cloud: leave --snapshot out")
        elif parsed_args.dry_run or parsed_args.yes:
            raise PerfVMError("--dry-run and --yes are for --heal")
        named = self.chosen_policy if parsed_args.heal else self.policy
        policy = named(parsed_args)
        subject = self.subject(policy, parsed_args)
        report = audit.run(subject)
        if parsed_args.heal and self._heal(subject, report, parsed_args):
            report = audit.run(self.subject(policy, parsed_args))
        return self.reported(parsed_args, report)

    def subject(self, policy: Policy, parsed_args: argparse.Namespace) -> Subject:
        """Read the cloud and the files that the audit judges."""
        placement = options_of(parsed_args.placement_conf)
        collected = hypervisors(parsed_args.collected, policy)
        return Subject(
            policy,
            snapshots.look_by(self, parsed_args, policy),
            placement_settings=placement,
            stuck_after_min=parsed_args.stuck_after,
            collected=collected,
        )

    def title(self, report: AuditReport) -> str:
        return (
            f"{len(report.results)} checks on {number_of(report.hosts, 'host')} and "
            f"{number_of(report.servers, 'server')}"
        )

    def _heal(
        self, subject: Subject, report: AuditReport, parsed_args: argparse.Namespace
    ) -> bool:
        """Restore allocations, if the operator agrees; return whether it was tried."""
        hosts = hosts_to_heal(subject.snapshot, report.findings)
        among = live_hosts.hypervisors(self.cloud) if hosts else ()
        steps = heal.look_at_all(self.cloud, subject.policy, hosts, among, self.say)
        would = [f"{host}: would {step}" for host, step in steps]
        if not self.agreed(parsed_args, would):
            return False
        heal.heal_all(self.cloud, subject.policy, steps, among, self.say)
        return True
