# SPDX-License-Identifier: Apache-2.0
"""The in-process cloud as tests have it: what they do to it and see in it.

``tests.cloud`` has what the demo needs: a cloud that starts, and boots servers.
"""

# First, before anything of Nova is imported: it chooses the threading mode.
from tests.cloud import bootstrap  # noqa: F401
from tests.embedded.cloud import FILTERS_WITHOUT_PERFVM, NOVA_WEIGHERS, OperatedCloud
from tests.embedded.servers import ActionFailedError, at_once

__all__ = [
    "FILTERS_WITHOUT_PERFVM",
    "NOVA_WEIGHERS",
    "ActionFailedError",
    "OperatedCloud",
    "at_once",
]
