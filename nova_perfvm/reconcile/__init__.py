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
