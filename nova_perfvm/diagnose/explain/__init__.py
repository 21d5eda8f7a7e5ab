# SPDX-License-Identifier: Apache-2.0
"""Explain why a server finds no host, or which hosts it finds.

If Placement has no candidate, Nova only says "No valid host was found": the filters are
not even asked.  Here each host is judged by Placement and the filters, from a snapshot.
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
