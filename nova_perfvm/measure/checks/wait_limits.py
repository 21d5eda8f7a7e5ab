# SPDX-License-Identifier: Apache-2.0
"""How long a vCPU may wait for a CPU, seen from inside the VM or from its host.

A vCPU that owns its CPU shares the CPU only with QEMU's and vhost's threads and with
interrupts.  The checks judge the vCPU that waits most: parallel programs wait for
the slowest, and a mean over 20 vCPUs hides one that loses a fifth of its time.

1 % is 10 ms of each second, enough for the worst latency of 13.38 ms that LY's
article found in a VM whose host had 0.66 ms, and more than interrupts and housekeeping
of an idle host take.  5 % is twice the total loss of that VM (2.3 % of sysbench's
events): another program runs on the CPU.

An idle vCPU hardly waits, even on a contended CPU: a vCPU that ran 2 ms of 5 s and
waited 8 ms lost most of its time, yet waited only 0.16 %.  So a vCPU that asked for
less than 5 % of the time, five times the allowed wait, proves nothing.
"""

from collections.abc import Mapping
from typing import Final

from nova_perfvm.findings import Level

WARN_ABOVE: Final = 0.01
FAIL_ABOVE: Final = 0.05
# Share of the time between the looks that a vCPU ran, or was ready to run.
LEAST_ASKED: Final = 0.05


def level(share: float) -> Level:
    """Return the level of a vCPU's wait.

    :param share: share of the time between the looks that the vCPU waited
    """
    if share <= WARN_ABOVE:
        return Level.OK
    return Level.FAILURE if share > FAIL_ABOVE else Level.WARNING


def idle(asked: Mapping[int, float]) -> str:
    """Return why idle vCPUs hide waiting; empty if all vCPUs asked for enough time.

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
