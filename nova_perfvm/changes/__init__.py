# SPDX-License-Identifier: Apache-2.0
"""From what is seen of a cloud to what should be: pure, without any request."""

from nova_perfvm.changes.enroll import plan_close, plan_enroll
from nova_perfvm.changes.steps import Change, Plan
from nova_perfvm.changes.unenroll import plan_forget, plan_unenroll

__all__ = [
    "Change",
    "Plan",
    "plan_close",
    "plan_enroll",
    "plan_forget",
    "plan_unenroll",
]
