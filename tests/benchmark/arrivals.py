# SPDX-License-Identifier: Apache-2.0
"""VMs that come and go as in a public trace, drawn by chance.

The figures are those of Azure's VM trace of 2017 (AzurePublicDataset V1, described by
Cortez et al., "Resource Central", SOSP 2017), counted in the form in which Bergsma et
al. ("Generating Complex, Realistic Cloud Workloads using Recurrent Neural Networks",
SOSP 2021) publish it, github.com/huaweicloud/trace_generation_rnn: sizes and batches of
its training part (1,200,998 VMs), lifetimes of the other two (669,435 VMs, Kaplan and
Meier's estimate, as 6 % still run when the trace ends).  The trace is not part of this
repository.

Simplified: batches come at random, at any hour alike; sizes and lifetimes are drawn
independently; batches end at 50 VMs (0.7 % have more).  VMs of 20 vCPUs, which the
trace lacks, come one by one, with the same lifetimes.
"""

import dataclasses
import itertools
import math
import random
from typing import NamedTuple

# (vCPUs, GB): how many of 100,000 batches begin with the size, and how many of 100,000
# VMs of another size than the VM before them have it.
SIZES = {
    (1, 0.75): (5910, 730),
    (1, 1.75): (54770, 24430),
    (1, 2): (20, 20),
    (2, 3.5): (23790, 35150),
    (2, 4): (30, 30),
    (2, 14): (40, 40),
    (2, 16): (1, 1),
    (4, 7): (7260, 27700),
    (4, 8): (10, 1),
    (4, 28): (40, 20),
    (4, 32): (10, 1),
    (8, 14): (6030, 11520),
    (8, 16): (1, 1),
    (8, 56): (2070, 340),
    (8, 64): (1, 1),
    (16, 112): (10, 10),
}
# The share of VMs that have the size of the VM before them in their batch.
SAME_SIZE = 0.927
# (fewest VMs, most VMs): the share of batches.
BATCHES = {
    (1, 1): 0.5714,
    (2, 2): 0.1808,
    (3, 3): 0.0657,
    (4, 4): 0.0407,
    (5, 5): 0.0248,
    (6, 7): 0.0284,
    (8, 10): 0.0265,
    (11, 15): 0.0244,
    (16, 25): 0.0163,
    (26, 50): 0.0210,
}
# Hours: the share of VMs that live longer.  2.9 % outlive the 5.7 days that can be
# seen; they end within 20 days here.
LIFETIMES = {
    0: 1.0,
    1 / 12: 0.874,
    1 / 6: 0.759,
    1 / 4: 0.658,
    1 / 3: 0.554,
    1 / 2: 0.441,
    3 / 4: 0.374,
    1: 0.345,
    2: 0.265,
    3: 0.232,
    4: 0.211,
    6: 0.180,
    8: 0.157,
    12: 0.120,
    16: 0.081,
    24: 0.060,
    48: 0.040,
    72: 0.035,
    137: 0.029,
    480: 0.0,
}
# The share of VMs that have the lifetime of the VM before them in their batch.
SAME_LIFETIME = 0.703
LONGEST = max(LIFETIMES)
MEAN_LIFETIME = sum(
    (end - begin) * (LIFETIMES[begin] + LIFETIMES[end]) / 2
    for begin, end in itertools.pairwise(LIFETIMES)
)
HP_SIZE = (20, 64)
# Sizes of batches are spread evenly over the logarithm, from `fewest` to `most`.
MEAN_BATCH = sum(
    share
    * sum(vms * math.log((vms + 1) / vms) for vms in range(fewest, most + 1))
    / math.log((most + 1) / fewest)
    for (fewest, most), share in BATCHES.items()
)


class Arrival(NamedTuple):
    """A VM: when it comes and leaves, in hours, its class and its size.

    :ivar kind: ``hp`` or ``general``
    :ivar size: (vCPUs, GB)
    """

    start: float
    end: float
    kind: str
    size: tuple


@dataclasses.dataclass(frozen=True)
class Demand:
    """How many VMs of each class run at a time on average, and for how long."""

    hp: int = 10
    general: int = 200
    hours: int = 24
    seed: int = 1


def arrivals(demand):
    """Return the VMs in the order of their arrival.

    At hour 0 those come that have not ended since they came in the 20 days before.
    """
    rng = random.Random(demand.seed)
    found = []
    for batches, make in (
        (demand.general / MEAN_BATCH, _batch),
        (demand.hp, lambda rng: [("hp", HP_SIZE, lifetime(rng))]),
    ):
        now = -LONGEST
        while (now := now + rng.expovariate(batches / MEAN_LIFETIME)) < demand.hours:
            found += [Arrival(now, now + hours, *vm) for *vm, hours in make(rng)]
    found.sort(key=lambda vm: vm.start)
    return [vm._replace(start=max(0.0, vm.start)) for vm in found if vm.end > 0]


def lifetime(rng):
    """Return for how many hours a VM runs."""
    left = rng.random()
    for begin, end in itertools.pairwise(LIFETIMES):
        if LIFETIMES[end] <= left:
            above, below = LIFETIMES[begin], LIFETIMES[end]
            return begin + (end - begin) * (above - left) / (above - below)
    return LONGEST


def batch_size(rng):
    """Return the number of VMs of a batch."""
    (fewest, most), *_ = rng.choices(list(BATCHES), BATCHES.values())
    return min(most, math.floor(fewest * ((most + 1) / fewest) ** rng.random()))


def _batch(rng):
    """Return (class, size, hours) of each VM of a batch."""
    found = []
    for number in range(batch_size(rng)):
        if not number or rng.random() > SAME_SIZE:
            column = min(number, 1)
            chances = [shares[column] for shares in SIZES.values()]
            (size,) = rng.choices(list(SIZES), chances)
        if not number or rng.random() > SAME_LIFETIME:
            hours = lifetime(rng)
        found.append(("general", size, hours))
    return found
