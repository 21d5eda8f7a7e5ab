# SPDX-License-Identifier: Apache-2.0
"""How long a vCPU may wait for a CPU, seen from inside the VM or from its host.

A vCPU that owns its CPU shares it only with QEMU's and vhost's threads and
interrupts left there.  Judged is the vCPU that suffers most, as
parallel programs wait for it, and a mean over 20 hides one that loses a fifth.

1 % is 10 ms of each second, enough for the worst latency of 13.38 ms that LY's
article found in a VM whose host had 0.66 ms, and more than interrupts and housekeeping
of an idle host take.  5 % is twice what that VM lost to its host in all (2.3 % of
sysbench's events): somebody else runs there.

A vCPU that hardly wants to run hardly waits, whoever else is there: one that ran 2 ms
of 5 s and waited 8 ms lost most of its time, and is at 0.16 %.  So a vCPU that asked
for less than 5 % of the time, five times what may be lost, tells nothing.
"""

from collections.abc import Mapping
from typing import Final

from nova_perfvm.findings import Level

WARN_ABOVE: Final = 0.01
FAIL_ABOVE: Final = 0.05
# Of the time between the looks, on a CPU or ready for one.
LEAST_ASKED: Final = 0.05


def level(share: float) -> Level:
    """Return how bad it is that a vCPU waited for a share of the time."""
    if share <= WARN_ABOVE:
        return Level.OK
    return Level.FAILURE if share > FAIL_ABOVE else Level.WARNING


def idle(asked: Mapping[int, float]) -> str:
    """Return why nobody can tell whether vCPUs wait; empty if one can.

    :param asked: {vCPU: share of the time that it ran, or was ready to}
    """
    few = [str(number) for number, share in asked.items() if share < LEAST_ASKED]
    if not few:
        return ""
    return (
        f"{len(few)} of {len(asked)} vCPUs asked for less than {LEAST_ASKED:.0%} of "
        f"the time between the looks ({', '.join(few[:5])}): put load on it, and "
        "collect again"
    )
