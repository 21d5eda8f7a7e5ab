# SPDX-License-Identifier: Apache-2.0
"""What must hold whatever slipped past: the policy's invariants, checked after.

Pure functions of the policy and of what was observed: the servers that run, the
CPUs that they are pinned to, and what Placement has allocated.  Storm tests and
the audit ask the same questions.
"""

from nova_perfvm.diagnose.audit.checks import CHECKS, AuditResult, Report, run
from nova_perfvm.diagnose.audit.finding import (
    CLASSES_MIXED,
    LEAKED_ALLOCATION,
    NOT_IN_ONE_CELL,
    NOT_PINNED,
    OVER_INVENTORY,
    PINS_OVERLAP,
    SEVERITIES,
    TOO_MANY_ON_CELL,
    TOO_MANY_ON_HOST,
    Finding,
    Severity,
)
from nova_perfvm.diagnose.audit.placement import Usage, check_consumers, check_usage
from nova_perfvm.diagnose.audit.servers import ServerFacts, check_servers
from nova_perfvm.diagnose.audit.subject import Subject

__all__ = [
    "CHECKS",
    "CLASSES_MIXED",
    "LEAKED_ALLOCATION",
    "NOT_IN_ONE_CELL",
    "NOT_PINNED",
    "OVER_INVENTORY",
    "PINS_OVERLAP",
    "SEVERITIES",
    "TOO_MANY_ON_CELL",
    "TOO_MANY_ON_HOST",
    "AuditResult",
    "Finding",
    "Report",
    "ServerFacts",
    "Severity",
    "Subject",
    "Usage",
    "check_consumers",
    "check_servers",
    "check_usage",
    "run",
]
