# SPDX-License-Identifier: Apache-2.0
"""Which of a host's allocation candidates Nova claims.

On an elastic host each free child provider makes a candidate, and Nova claims
the first one only, always of the same child: two requests at once, or a
multi-create of two, would then fail on an empty host of two slots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nova import objects


def rotate(candidates: list[dict[str, Any]], start: int) -> None:
    """Put candidates into an order of their own, beginning at ``start``, in place.

    The same candidates with ``start + 1`` begin with the next.  Which is first
    changes only how often a claim is refused needlessly, never whether more is
    granted than there is: Placement sees to that.

    :param candidates: Placement's allocation requests, as HostState has them
    """
    if len(candidates) < 2:
        return
    candidates.sort(key=lambda candidate: sorted(candidate["allocations"]))
    first = start % len(candidates)
    candidates[:] = candidates[first:] + candidates[:first]


def turn_of(spec_obj: objects.RequestSpec) -> int:
    """Return a number that is the same for all VMs of a request.

    That of its record: requests that are made at the same time have
    neighbouring numbers and so begin with different children, where one drawn
    at random, such as the instance's UUID, would collide every m-th time.
    """
    return spec_obj.id if "id" in spec_obj else 0
