# SPDX-License-Identifier: Apache-2.0
"""The statuses of migrations that are not over."""

from typing import Final

# A migration in one of these may hold allocations and CPUs of the host it leaves.
# Nova has no such list: it asks, host by host, for what is not over.
UNFINISHED: Final = (
    *("accepted", "queued", "preparing", "pre-migrating", "migrating"),
    *("running", "running (post-copy)", "post-migrating", "finished"),
    *("reverting", "confirming"),
)
