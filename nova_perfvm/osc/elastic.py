# SPDX-License-Identifier: Apache-2.0
"""``perfvm host enroll``, ``host unenroll``, ``preflight`` and ``rollback``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.changes.unenroll import plan_unenroll
from nova_perfvm.cloud import converge, host_nodes
from nova_perfvm.cloud.errors import RefusedError
from nova_perfvm.cloud.rollback import plan_rollback, rollback
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import Selection, Subject
from nova_perfvm.exceptions import PerfVMError, unknown_host
from nova_perfvm.facts.host_view import view_of
from nova_perfvm.osc import options as opt
from nova_perfvm.osc import snapshot as snapshots
from nova_perfvm.osc.base import Table, nova_options, options_of
from nova_perfvm.osc.changing import ChangingCommand, HostsCommand
from nova_perfvm.osc.recording import RecordingCommand
from nova_perfvm.osc.reports import FindingsLister


class EnrollHost(HostsCommand, RecordingCommand):
    """Enroll compute hosts for units or NUMA nodes, or repair enrolled ones."""

    ended = "enrolled"
    arguments = (
        opt.HOSTS,
        opt.DELETE_CHILDREN,
        opt.option(
            "--slots N",
            "number of high-performance VMs that fit each host, 0 for general VMs "
            "only (default: as enrolled before, else computed from the host's CPUs)",
            type=int,
        ),
        opt.flag(
            "--backfill",
            "give VMs that run on the host the units or NUMA nodes of their class in "
            "Placement; "
            "nova-compute is disabled meanwhile",
        ),
        opt.NOVA_DB,
        opt.one_of(
            opt.INVENTORY,
            opt.collected(
                "it has that host's NUMA nodes, for hosts without them in Nova's "
                "database (may be repeated)"
            ),
        ),
        opt.file(
            "--nova-conf",
            "nova.conf of the hosts of --collected, for their CPU sets (default: "
            "VMs may own all CPUs; Placement's inventories have to agree)",
        ),
    )

    def planner(self, parsed_args: argparse.Namespace) -> converge.Planner:
        policy = self.checked_policy(parsed_args)
        complete = host_nodes.completing(
            policy,
            parsed_args.from_nova_db,
            parsed_args.inventory,
            host_nodes.hypervisors(
                parsed_args.collected, policy, parsed_args.nova_conf
            ),
            self.tell,
        )
        plan = partial(
            plan_enroll,
            policy,
            slots=parsed_args.slots,
            backfill=parsed_args.backfill,
            delete_children=parsed_args.delete_children,
        )
        return lambda view: plan(view_of(complete(view.cloud), view.host))

    def agreed(self, parsed_args: argparse.Namespace, steps: Sequence[str]) -> bool:
        """Show the steps of a plan, ask, and record the policy if the answer is yes."""
        agreed = super().agreed(parsed_args, steps)
        self.record_for(parsed_args, steps, agreed=agreed)
        return agreed

    def nothing_to_do(self, parsed_args: argparse.Namespace) -> None:
        """Record the policy if --yes or --policy-changed asks for it."""
        self.record_for(parsed_args, (), agreed=False)


class UnenrollHost(HostsCommand):
    """Make enrolled hosts ordinary ones again."""

    ended = "no longer enrolled"
    arguments = (opt.HOSTS, opt.DELETE_CHILDREN)

    def planner(self, parsed_args: argparse.Namespace) -> converge.Planner:
        return partial(plan_unenroll, delete_children=parsed_args.delete_children)


class Rollback(ChangingCommand):
    """Unenroll all hosts; remove their aggregates, traits and resource classes."""

    arguments = (
        opt.flag(
            "--strip-units",
            "take units and NUMA nodes out of the allocations of running VMs; nothing "
            "then keeps the classes apart",
        ),
        opt.DELETE_CHILDREN,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Plan, warn, ask, and roll back; return 1 if a change failed."""
        plan = plan_rollback(
            self.cloud,
            strip=parsed_args.strip_units,
            delete_children=parsed_args.delete_children,
        )
        for warning in plan.warnings:
            self.warn(warning)
        if plan.refusals:
            raise RefusedError(plan.refusals)
        remained: list[str] = []
        if self.agreed(parsed_args, [f"would {change}" for change in plan.changes]):
            remained = rollback(self.cloud, plan, self.say)
        elif plan.changes:
            return 0
        self.say_what_stays()
        for reason in remained:
            self.tell(f"remains: {reason}")
        return 1 if remained else 0


class Preflight(FindingsLister):
    """Check the prerequisites of elastic hosts, and which VMs enforcing would refuse.

    Exits with 0 if all checks pass, 1 for warnings and unknown results, 2 for failures.
    """

    needs_cloud = True
    arguments = (
        opt.option("hosts HOST", "hosts that you will enroll", nargs="*"),
        opt.NOVA_DB,
        opt.NOVA_CONF,
        opt.PLACEMENT_CONF,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        policy = self.policy(parsed_args)
        # Files before requests to the cloud: a wrong file fails at once.
        nova = nova_options(parsed_args.nova_conf)
        placement = options_of(parsed_args.placement_conf)
        seen = snapshots.look_by(self, parsed_args, policy)
        known = {name for host in seen.hosts for name in (host.host, host.node)}
        unknown = sorted(set(parsed_args.hosts) - known)
        if unknown:
            told = (unknown_host(name, known, seen.unseen_hosts) for name in unknown)
            raise PerfVMError("; ".join(told))
        subject = Subject(
            policy,
            seen,
            **nova,
            placement_settings=placement,
            wanted=frozenset(parsed_args.hosts),
        )
        return self.reported(parsed_args, audit.run(subject, Selection.PREFLIGHT))
