# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What must hold whatever slipped past: the policy's invariants, checked after.

Pure functions of the policy and of what was observed: the servers that run, the
CPUs that they are pinned to, and what Placement has allocated.  Storm tests and
the audit ask the same questions.
"""

from nova_perfvm.audit.checks import CHECKS, Report, Result, run
from nova_perfvm.audit.finding import (
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
from nova_perfvm.audit.placement import Usage, check_consumers, check_usage
from nova_perfvm.audit.servers import ServerFacts, check_servers
from nova_perfvm.audit.subject import Subject

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
    "Finding",
    "Report",
    "Result",
    "ServerFacts",
    "Severity",
    "Subject",
    "Usage",
    "check_consumers",
    "check_servers",
    "check_usage",
    "run",
]
