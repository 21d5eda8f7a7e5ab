# SPDX-License-Identifier: Apache-2.0
"""Why a server comes to no host, or to which: Placement and the rules together.

Nova says "No valid host was found" and nothing else where Placement has no
candidate: the filters are then not even asked.  Here each host is judged by
both, from a snapshot.
"""

from nova_perfvm.diagnose.explain.report import (
    Explanation,
    NotFoundError,
    Row,
    explain,
    one,
    request_of,
)
from nova_perfvm.diagnose.explain.scheduled import explain_scheduled

__all__ = [
    "Explanation",
    "NotFoundError",
    "Row",
    "explain",
    "explain_scheduled",
    "one",
    "request_of",
]
