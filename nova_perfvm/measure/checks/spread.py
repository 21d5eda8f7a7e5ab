# SPDX-License-Identifier: Apache-2.0
"""Over how many queues some connections should be spread.

Each connection is hashed to one queue.  Hashing leaves queues empty and gives
others several connections, and connections differ in size, so a guest without a
fault does not use all its queues evenly.
"""

from __future__ import annotations

import functools
import random
from typing import Final

from nova_perfvm.measure.observed.interrupts import effective

# Spread of the logarithm of connections' rates.  At 1.0 a tenth of them carries
# about 39 % of the packets; the median for 16 connections over 20 queues is then
# 6.2, and a guest of 20 queues without a fault measured 6.62.
SIGMA: Final = 1.0
# What one guest without a fault in a hundred falls below.
QUANTILE: Final = 0.01
_TRIALS: Final = 1000
# More are spread more evenly; to expect less of them is the careful side.
_MOST_FLOWS: Final = 256
_SEED: Final = 1


@functools.cache
def least_effective(flows: int, queues: int) -> float:
    """Return the effective number of queues that a guest without a fault has.

    It is the first percentile of a simulation with connections of log-normal rates
    and always the same random numbers.  (The closed form for equal rates,
    f * q / (q + f - 1), is the mean of what no traffic is like.)
    """
    # Not for secrets.
    draw = random.Random(_SEED)  # noqa: S311
    if not flows:
        return 0.0
    found = []
    for _ in range(_TRIALS):
        load = [0.0] * queues
        for _ in range(min(flows, _MOST_FLOWS)):
            load[draw.randrange(queues)] += draw.lognormvariate(0, SIGMA)
        found.append(effective(load))
    return sorted(found)[int(_TRIALS * QUANTILE)]
