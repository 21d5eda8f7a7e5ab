# SPDX-License-Identifier: Apache-2.0
"""The statuses of unfinished migrations."""

from typing import Final

# A migration in one of these may hold allocations and CPUs of the host it leaves.
# Nova has no such list: it queries the unfinished migrations of one host at a time.
UNFINISHED: Final = (
    *("accepted", "queued", "preparing", "pre-migrating", "migrating"),
    *("running", "running (post-copy)", "post-migrating", "finished"),
    *("reverting", "confirming"),
)

# drop_move_claim_at_dest() of nova.compute.resource_tracker ends the record of a move
# so before finish_revert_resize() takes the server back to its old host.
REVERTED: Final = "reverted"
