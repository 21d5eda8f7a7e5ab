# SPDX-License-Identifier: Apache-2.0
"""What must hold whatever slipped past: the policy's invariants, checked after.

Pure functions of the policy and of what was observed: the servers that run, the
CPUs that they are pinned to, and what Placement has allocated.  Storm tests and
the audit ask the same questions.
"""

from nova_perfvm.diagnose.audit.checks import CHECKS, AuditResult, Report, run
from nova_perfvm.diagnose.audit.placement import check_consumers
from nova_perfvm.diagnose.audit.servers import ServerFacts, check_servers
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.diagnose.audit.usage import Usage, check_usage
from nova_perfvm.findings import SEVERITIES, Finding, Severity

__all__ = [
    "CHECKS",
    "SEVERITIES",
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
