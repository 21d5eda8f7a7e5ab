# SPDX-License-Identifier: Apache-2.0
"""``policy check`` with a cloud."""

from __future__ import annotations

import argparse

from nova_perfvm.changes.steps import Plan
from nova_perfvm.cloud import flavors
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import Selection, Subject, Sync
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import Table, nova_options, policy_path
from nova_perfvm.osc.flavor import FLAVOR_ARGUMENTS, flavors_of, sync_command
from nova_perfvm.osc.reports import FindingsLister
from nova_perfvm.osc.snapshot import look_by


class CheckCloudPolicy(FindingsLister):
    """Compare a policy with a cloud: flavors, aggregates, hosts, filters.

    Exits with 0 if all checks pass, 1 for warnings and unknown results, 2 for failures.
    """

    needs_cloud = True
    judges = "policy"
    arguments = (
        opt.POLICY_FILE,
        *FLAVOR_ARGUMENTS,
        opt.NOVA_CONF,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        policy = self.load_policy(policy_path(parsed_args))
        nova = nova_options(parsed_args.nova_conf)
        plan = Plan()
        if policy.lists_flavors or parsed_args.memory_gb:
            chosen = flavors_of(policy, parsed_args)
            plan = flavors.plan(self.cloud, chosen, policy=policy)
        changes = tuple(map(str, plan.changes))
        subject = Subject(
            policy,
            look_by(self, parsed_args, policy),
            **nova,
            sync=Sync(changes, plan.refusals, sync_command(parsed_args)),
            isolated_aggregates=parsed_args.isolated_aggregates,
        )
        return self.reported(parsed_args, audit.run(subject, Selection.POLICY))
