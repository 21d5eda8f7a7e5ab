# SPDX-License-Identifier: Apache-2.0
"""From what is seen of a cloud to what should be: pure, without any request."""

from nova_perfvm.reconcile.changes import Change, Plan
from nova_perfvm.reconcile.enroll import DEFAULT_AGGREGATE, plan_close, plan_enroll
from nova_perfvm.reconcile.observed import (
    DISABLED_REASON,
    ISOLATING,
    Aggregate,
    HostView,
    Inventory,
    Provider,
    Server,
    Service,
)
from nova_perfvm.reconcile.unenroll import plan_forget, plan_unenroll

__all__ = [
    "DEFAULT_AGGREGATE",
    "DISABLED_REASON",
    "ISOLATING",
    "Aggregate",
    "Change",
    "HostView",
    "Inventory",
    "Plan",
    "Provider",
    "Server",
    "Service",
    "plan_close",
    "plan_enroll",
    "plan_forget",
    "plan_unenroll",
]
