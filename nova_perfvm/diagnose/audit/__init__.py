# SPDX-License-Identifier: Apache-2.0
"""All checks of a cloud under a policy: the audit, preflight and ``policy check``.

Pure functions of the policy and of observed facts: hosts, flavors, options, running
servers, the CPUs that they are pinned to, and Placement's allocations.  The storm tests
use the same checks.
"""

from nova_perfvm.diagnose.audit.checks import (
    CHECKS,
    AuditReport,
    Selection,
    run,
    selected,
)
from nova_perfvm.diagnose.audit.servers import ServerFacts, check_servers
from nova_perfvm.diagnose.audit.subject import Subject, Sync

__all__ = [
    "CHECKS",
    "AuditReport",
    "Selection",
    "ServerFacts",
    "Subject",
    "Sync",
    "check_servers",
    "run",
    "selected",
]
