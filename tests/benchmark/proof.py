# SPDX-License-Identifier: Apache-2.0
"""How often a VM that is known is proven, rightly and wrongly.

Measurements are made under noise whose law is known, and are compared as those of a
real run are.  The tables are in doc/source/contributor/statistics.rst.

    python -m tests.benchmark.proof [TRIALS]
"""

import math
import sys
from typing import NamedTuple

import numpy as np

from nova_perfvm.findings import Level
from nova_perfvm.measure.samples import Machine, Measurement
from nova_perfvm.measure.statistics.compare import TARGET, compare
from nova_perfvm.measure.statistics.intervals import estimate, rounds_needed
from tests.benchmark import coverage
from tests.benchmark.coverage import Noise, spoiled

TRIALS = 2000
ROUNDS = (5, 10, 20)
# {an endpoint of a class: what is better}.  Each of two VMs has a row of each.
ENDPOINTS = {
    "cpu.events_per_second": "higher",
    "memory.bandwidth_mib_per_second": "higher",
    "memory.random_access_ns": "lower",
    "network.bits_per_second": "higher",
    "network.receive_bits_per_second": "higher",
    "disk.read_iops": "higher",
    "disk.write_iops": "higher",
    "scheduling.latency_p99_9_us": "lower",
}
HOST = Machine("host", "6.8.0", "Xeon Gold 6248", "performance", 0)
VM = Machine("guest", "6.1.0", "Xeon Gold 6248")
QUIET = Noise("2 %", 0.02)
ALIKE = (QUIET, Noise("5 %", 0.05), Noise("10 %", 0.10))
PLANNED = (*ALIKE[1:], Noise("25 %", 0.25))


class Bad(NamedTuple):
    """A VM that is worse than the target, and how its noise differs from its host's.

    :ivar slow: part of the rounds in which the VM alone is slower
    :ivar factor: draws by how much
    """

    name: str
    slow: float
    factor: str

    def draw(self, rng, rounds):
        """Return the VM's speed in each round; its geometric mean is 1."""
        if self.factor == "half":
            speed, mean = 0.5, math.log(0.5)
        else:
            # The mean of the logarithm of 1 / u with u drawn from 1 to 2.
            speed, mean = 1 / rng.uniform(1, 2, rounds), 1 - 2 * math.log(2)
        drawn = np.where(rng.random(rounds) < self.slow, speed, 1.0)
        return drawn / math.exp(self.slow * mean)


BAD = (
    Bad("as the host's", 0.0, "half"),
    Bad("1 of 10 rounds up to 2 times slower", 0.1, "up to half"),
    Bad("1 of 10 rounds at half speed", 0.1, "half"),
    Bad("1 of 5 rounds at half speed", 0.2, "half"),
)


def measured(rng, metrics, vms, rounds, noise, speed):
    """Yield measurements of a host and its VMs.

    :param speed: {round: the VMs' speed / the host's}
    """
    for metric, better in metrics.items():
        for machine, names in ((HOST, ["node0", "node1"][:vms]), (VM, vms_of(vms))):
            for who in names:
                for number in range(rounds):
                    value = 1000 * spoiled(rng, rng.standard_normal(1), noise)[0]
                    if machine is VM:
                        value *= speed[number]
                    yield Measurement(
                        who=who,
                        machine=machine,
                        tool="tool",
                        tool_version="1",
                        metric=metric,
                        unit="1/s",
                        better=better,
                        threads=20,
                        value=value if better == "higher" else 1e6 / value,
                        round=number + 1,
                        at_once=vms,
                    )


def vms_of(number):
    """Return the names of VMs."""
    return [f"vm{n + 1}" for n in range(number)]


def proven(measurements, target=TARGET):
    """Return whether all rows pass, none of them with a doubt."""
    rows = compare(
        list(measurements), target=target, is_primary=lambda _group, _better: True
    )
    return all(row.level is Level.OK and not row.doubts for row in rows)


def rightly(rounds, noise, trials):
    """Return the part of VMs exactly as fast as their host that is proven."""
    rng = np.random.default_rng([coverage.SEED, rounds, int(1000 * noise.variation)])
    even = np.ones(rounds)
    found = [
        proven(measured(rng, ENDPOINTS, 2, rounds, noise, even)) for _ in range(trials)
    ]
    return sum(found) / trials


def wrongly(rounds, bad, part, trials):
    """Return the part of VMs at a part of the target that is proven.

    All rows but one pass, which makes it easiest: it is the one that is measured.
    """
    rng = np.random.default_rng(
        [coverage.SEED, rounds, BAD.index(bad), int(1000 * part)]
    )
    metric = {"cpu.events_per_second": "higher"}
    found = []
    for _ in range(trials):
        speed = part * TARGET * bad.draw(rng, rounds)
        found.append(proven(measured(rng, metric, 1, rounds, QUIET, speed)))
    return sum(found) / trials


def told(ratio, noise, trials):
    """Return the part of plans of more rounds that tell, of those that are made.

    :param ratio: of VM and host; five rounds did not tell it from the target
    """
    rng = np.random.default_rng(
        [coverage.SEED, int(1000 * ratio), int(1000 * noise.variation)]
    )
    made = enough = 0
    while made < trials:
        first = ratios(rng, ratio, 5, noise)
        found = estimate(first)
        if found.low >= TARGET or found.ratio < TARGET:
            continue
        needed = rounds_needed(found, TARGET)
        if needed is None:
            continue
        made += 1
        enough += (
            estimate([*first, *ratios(rng, ratio, needed - 5, noise)]).low >= TARGET
        )
    return enough / made


def ratios(rng, ratio, rounds, noise):
    """Return the ratios of rounds."""
    vm, host = (spoiled(rng, rng.standard_normal(rounds), noise) for _ in range(2))
    return list(ratio * vm / host)


def tables(trials):
    """Yield the tables as text."""
    by_rounds = [f"{rounds} rounds" for rounds in ROUNDS]
    yield coverage.as_csv(
        f"Proven of VMs as fast as their host, {trials // 4} trials each, %",
        ("Variation", *by_rounds),
        (
            (noise.name, *(percent(rightly(n, noise, trials // 4)) for n in ROUNDS))
            for noise in ALIKE
        ),
    )
    yield coverage.as_csv(
        f"Proven of VMs that miss or just reach the target, {trials} trials each, %",
        ("Part of the target", "The VM's noise", *by_rounds),
        (
            (part, bad.name, *(percent(wrongly(n, bad, part, trials)) for n in ROUNDS))
            for part in (0.9, 1.0)
            for bad in BAD
        ),
    )
    yield coverage.as_csv(
        f"Plans of more rounds that tell, {trials} plans each, %",
        ("VM / host", *(noise.name for noise in PLANNED)),
        (
            (ratio, *(percent(told(ratio, noise, trials)) for noise in PLANNED))
            for ratio in (0.72, 0.75, 0.80)
        ),
    )


def percent(part):
    """Return a part as the tables have it."""
    return f"{100 * part:.1f}"


if __name__ == "__main__":
    sys.exit(coverage.main(TRIALS, tables, *map(int, sys.argv[1:])))
