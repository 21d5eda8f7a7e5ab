# SPDX-License-Identifier: Apache-2.0
"""Watcher's decision engine and applier, for one task: a process of Watcher's own.

``python engine.py watcher.conf TASK ARGUMENTS``, where the arguments are JSON.
"""

import datetime as dt
import json
import sys

from oslo_config import cfg
from oslo_log import log
from oslo_utils import timeutils
from watcher import objects
from watcher.applier.action_plan.default import DefaultActionPlanHandler
from watcher.common import config, context, utils
from watcher.db.sqlalchemy import migration
from watcher.decision_engine.audit.continuous import ContinuousAuditHandler
from watcher.decision_engine.audit.oneshot import OneShotAuditHandler
from watcher.decision_engine.loading.default import DefaultStrategyLoader
from watcher.decision_engine.sync import Syncer

STRATEGY = "perfvm_defragment"
CONTEXT = context.make_context(is_admin=True)
HANDLERS = {"CONTINUOUS": ContinuousAuditHandler, "ONESHOT": OneShotAuditHandler}


def start():
    """Do what services do when they start the first time."""
    migration.create_schema()
    Syncer().sync()
    found = objects.Strategy.get_by_name(CONTEXT, STRATEGY, eager=True)
    return {"goal": found.goal.name}


def create(parameters, scope=(), kind="CONTINUOUS"):
    """Create an audit, as the API does; return its ID."""
    schema = DefaultStrategyLoader().load(STRATEGY).get_schema()
    utils.StrictDefaultValidatingDraft4Validator(schema).validate(parameters)
    strategy = objects.Strategy.get_by_name(CONTEXT, STRATEGY)
    audit = objects.Audit(
        CONTEXT,
        uuid=utils.generate_uuid(),
        name=utils.generate_uuid(),
        audit_type=kind,
        state="PENDING",
        parameters=parameters,
        interval="300",
        scope=list(scope),
        goal_id=strategy.goal_id,
        strategy_id=strategy.id,
        auto_trigger=False,
    )
    audit.create()
    return audit.uuid


def be_later(minutes):
    now = timeutils.utcnow() + dt.timedelta(minutes=minutes)
    timeutils.set_time_override(now)


def audit(uuid, minute=0):
    """Let the decision engine execute an audit at a later minute."""
    be_later(minute)
    found = objects.Audit.get_by_uuid(CONTEXT, uuid, eager=True)
    HANDLERS[found.audit_type]().execute(found, CONTEXT)
    state = objects.Audit.get_by_uuid(CONTEXT, uuid).state
    plans = objects.ActionPlan.list(
        CONTEXT, filters={"audit_uuid": uuid}, sort_key="id", sort_dir="desc"
    )
    return {"state": state, "plan": shown(plans[0].uuid) if plans else None}


def execute(uuid, minute=0):
    """Let the applier execute an action plan."""
    be_later(minute)
    DefaultActionPlanHandler(CONTEXT, None, uuid).execute()
    return shown(uuid)


def shown(uuid):
    plan = objects.ActionPlan.get_by_uuid(CONTEXT, uuid)
    mine = {"action_plan_uuid": uuid}
    actions = objects.Action.list(CONTEXT, filters=mine, sort_key="id")
    indicators = objects.EfficacyIndicator.list(CONTEXT, filters=mine)
    return {
        "uuid": uuid,
        "state": plan.state,
        "actions": [
            {
                "uuid": action.uuid,
                "type": action.action_type,
                "parents": action.parents,
                "state": action.state,
                **action.input_parameters,
            }
            for action in actions
        ],
        "indicators": {one.name: one.value for one in indicators},
        "efficacy": plan.global_efficacy,
    }


if __name__ == "__main__":
    path, task, arguments = sys.argv[1:]
    log.register_options(cfg.CONF)
    config.parse_args(["watcher", "--config-file", path])
    log.setup(cfg.CONF, "watcher")
    objects.register_all()
    sys.stdout.write(json.dumps(globals()[task](**json.loads(arguments))))
