# SPDX-License-Identifier: Apache-2.0
"""A Watcher strategy that plans like ``plan defragment`` and ``plan free``."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from openstack.connection import Connection
from oslo_config import cfg
from oslo_log import log
from oslo_utils import timeutils
from watcher import objects
from watcher.common import context
from watcher.decision_engine.planner.weight import WeightPlanner
from watcher.decision_engine.strategy.strategies import base

from nova_perfvm.changes.migrations import goals
from nova_perfvm.changes.migrations.model import MigrationPlan
from nova_perfvm.changes.migrations.planning import Planning, PlanOptions
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.diagnose.capacity import request_of_class
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.recorded_policy import recorded
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.generate import inventory
from nova_perfvm.policy import loader
from nova_perfvm.watcher.goal import GAINED, PLANNED, FreeSlots

LOG = log.getLogger(__name__)

_DAY: Final = timedelta(days=1)
# Watcher's migrate action handles only these statuses.
_MOVABLE: Final = frozenset({"ACTIVE", "SHUTOFF"})
# Type, default, description, minimum
_PARAMETERS: Final = {
    "class": ("string", "", "Pinned class to make room for; empty for the only one"),
    "keep_free": (
        "integer",
        0,
        "Number of servers to keep room for; 0 for the most",
        0,
    ),
    "threshold": ("integer", 1, "Migrate only if so many more servers would fit", 1),
    "hold_minutes": ("integer", 60, "Minutes that the threshold must have held", 0),
    "migrations_per_day": ("integer", 10, "Most migrations begun within 24 hours", 1),
}


class InOrderPlanner(WeightPlanner):
    """Watcher's default planner, changed to run migrations one at a time.

    A migration of a plan may need the room that the preceding migration frees.
    """

    parallelization = WeightPlanner.parallelization | {"migrate": 1}


class DefragmentStrategy(base.BaseStrategy):
    """Migrate servers so that more servers of a pinned class fit, within a budget."""

    planner = "perfvm_in_order"

    @classmethod
    def get_name(cls) -> str:
        return "perfvm_defragment"

    @classmethod
    def get_display_name(cls) -> str:
        return "Make room for high-performance servers"

    get_translatable_display_name = get_display_name

    @classmethod
    def get_goal_name(cls) -> str:
        return FreeSlots.get_name()

    @classmethod
    def get_schema(cls) -> dict[str, Any]:
        keys = ("type", "default", "description", "minimum")
        properties = {
            name: dict(zip(keys, values, strict=False))
            for name, values in _PARAMETERS.items()
        }
        return {"properties": properties, "additionalProperties": False}

    @classmethod
    def get_config_opts(cls) -> list[cfg.Opt]:
        policy = "nova-scheduler's policy file; builtin for the built-in policy."
        nodes = "Inventory file with the hosts' NUMA nodes, which no API shows."
        return [
            cfg.StrOpt("policy_file", default="/etc/nova/perfvm.yaml", help=policy),
            cfg.StrOpt("inventory_file", help=nodes),
        ]

    def pre_execute(self) -> None:
        """Read the policy and the cloud.

        :raises PerfVMError: when a file cannot be read, a service fails, or the cloud
            records another policy
        """
        self._pre_execute()
        policy = loader.load(self.config.policy_file)
        path, nova = self.config.inventory_file, cfg.CONF.nova
        cells = {} if path is None else inventory.load(path, policy)
        where = {"region_name": nova.region_name, "interface": nova.valid_interfaces}
        seen = read_snapshot(API(Connection(session=self.osc.session, **where)))
        snapshot, remarks = inventory.with_inventory(seen, cells)
        for remark in (*snapshot.gaps, *remarks):
            LOG.warning("%s", remark)
        known = recorded(snapshot.aggregates)
        if known is not None and known.digest != policy.digest:
            raise PerfVMError(
                f"{self.config.policy_file}: the cloud was changed by another policy, "
                f"{known}: set [watcher_strategies.{self.name}]policy_file to it"
            )
        wishes = PlanOptions(excluded=self._excluded(snapshot))
        self._planning = Planning(policy, snapshot, settings_for(policy).strict, wishes)

    def _excluded(self, snapshot: Snapshot) -> frozenset[str]:
        """Return hosts and servers to leave alone.

        These are hosts outside the audit's scope, servers that Watcher excludes, and
        servers in a status that Watcher's migrate action does not handle.
        """
        model = self.compute_model
        hosts = {node.hostname for node in model.get_all_compute_nodes().values()}
        servers = model.get_all_instances().values()
        return frozenset(
            {host.host for host in snapshot.hosts if host.host not in hosts}
            | {server.uuid for server in servers if server.watcher_exclude}
            | {s.id for s in snapshot.servers if s.status not in _MOVABLE}
        )

    def do_execute(self, audit: Any = None) -> None:
        """Plan migrations if the threshold has held and the day's budget is left."""
        threshold = self.input_parameters["threshold"]
        budget = self.input_parameters["migrations_per_day"]
        plan = self._plan(budget)
        gained = max(0, plan.gained)
        self.solution.set_efficacy_indicators(**{GAINED: gained, PLANNED: 0})
        if gained < threshold or not self._held(audit, threshold):
            LOG.info(
                "%s more servers would fit: too few, or not for long enough", gained
            )
            return
        left = budget - self._begun()
        if 0 < left < len(plan.moves):
            plan = self._plan(left)
        if left <= 0 or plan.gained < threshold:
            LOG.info("%s migrations are left for the day: too few", max(0, left))
            return
        self.solution.set_efficacy_indicators(**{PLANNED: len(plan.moves)})
        for move in plan.moves:
            parameters = {
                "migration_type": move.how,
                "source_node": move.source,
                "destination_node": move.target,
                "resource_name": move.name,
            }
            self.solution.add_action(self.MIGRATION, parameters, move.server)

    def _plan(self, most_moves: int) -> MigrationPlan:
        wishes = replace(self._planning.wishes, max_moves=most_moves)
        planning = replace(self._planning, wishes=wishes)
        name, wanted = (self.input_parameters[key] for key in ("class", "keep_free"))
        vm_class = planning.policy.pinned_class(name or None)
        if wanted:
            request = request_of_class(planning.policy, vm_class, planning.snapshot)
            plan = goals.free(planning, request, wanted)
        else:
            plan = goals.defragment(planning, vm_class)
        for remark in (*plan.notes, *plan.reasons):
            LOG.info("%s", remark)
        return plan

    def _held(self, audit: Any, threshold: int) -> bool:
        """Return whether every audit within the hold time reached the threshold.

        The efficacy indicators of the audit's earlier action plans show it; plans more
        than a day older than the hold time are ignored.
        """
        hold = timedelta(minutes=self.input_parameters["hold_minutes"])
        once = objects.audit.AuditType.ONESHOT.value
        if not hold or audit is None or audit.audit_type == once:
            return True
        begin = timeutils.utcnow() - hold
        everything = context.make_context(show_deleted=True)
        recent = {"audit_uuid": audit.uuid, "created_at__gte": begin - _DAY}
        for plan in objects.ActionPlan.list(
            everything, filters=recent, sort_key="id", sort_dir="desc"
        ):
            kept = {"action_plan_id": plan.id, "name": GAINED}
            found = objects.EfficacyIndicator.list(everything, filters=kept)
            if not found or found[0].value < threshold:
                return False
            if timeutils.normalize_time(plan.created_at) <= begin:
                return True
        return False

    def _begun(self) -> int:
        """Return the number of migrations begun for this strategy within 24 hours."""
        everything = context.make_context(show_deleted=True)
        since = timeutils.utcnow() - _DAY
        states = ("ONGOING", "SUCCEEDED", "FAILED")
        begun = {"state__in": states, "updated_at__gte": since}
        mine = objects.Strategy.get_by_name(everything, self.name).id
        actions = objects.Action.list(everything, filters=begun, eager=True)
        return sum(action.action_plan.strategy_id == mine for action in actions)

    def post_execute(self) -> None:
        """Do nothing: do_execute() has set the efficacy indicators."""
