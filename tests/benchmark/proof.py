# SPDX-License-Identifier: Apache-2.0
"""How often a VM whose speed is known is proven, rightly and wrongly.

The noise is of its own laws, which no code of the verdict knows.  Each cell is the
worst of several seeds.  The tables are in doc/source/contributor/statistics.rst.

    python -m tests.benchmark.proof [TRIALS]
"""

import math
import sys
from typing import NamedTuple

import numpy as np

from nova_perfvm.findings import Level
from nova_perfvm.measure.statistics.compare import LATENCY_TARGET, TARGET
from nova_perfvm.measure.statistics.intervals import estimate
from nova_perfvm.measure.statistics.verdict import judge
from tests.benchmark import coverage

TRIALS = 1000
SEEDS = (1, 2, 3, 4)
ROUNDS = (5, 10, 20, 40)
VMS = 2
# Of each VM: CPU, the network's two directions, memory; its latency; p99.9.
HIGHER, LOWER = ("higher", TARGET), ("lower", 1 / TARGET)
TAIL = ("lower", LATENCY_TARGET)
ENDPOINTS = (*[HIGHER] * 4, LOWER, TAIL)


def varying(rng, rounds, variation):
    """Return values of a gamma law with a coefficient of variation."""
    shape = variation**-2
    return rng.gamma(shape, 1 / shape, rounds)


def wandering(rng, rounds, variation, phi=0.9):
    """Return values each of which resembles the one before: AR(1) of the logarithm."""
    found = [rng.standard_normal()]
    for shock in rng.standard_normal(rounds - 1):
        found.append(phi * found[-1] + math.sqrt(1 - phi**2) * shock)
    return np.exp(variation * np.array(found))


class Modes(NamedTuple):
    """A VM that is slower than its host in a part of its runs.

    :ivar slow: the part
    :ivar speed: in those runs, of that in the others; two for the ends it is
        drawn between
    :ivar variation: coefficient of variation of each run, and of the host's
    """

    name: str
    slow: float = 0.0
    speed: tuple[float, ...] = (1.0,)
    variation: float = 0.02

    def draw(self, rng, rounds):
        """Return (host, VM) in each round; the VM's geometric mean is the host's."""
        host, vm = (varying(rng, rounds, self.variation) for _ in range(2))
        factor = rng.uniform(self.speed[0], self.speed[-1], rounds)
        vm = np.where(rng.random(rounds) < self.slow, vm * factor, vm)
        return host, vm / math.exp(self.slow * _mean_log(*self.speed))


class Drift(NamedTuple):
    """A VM, and maybe its host, that drifts on its own from run to run."""

    name: str
    vm: float
    host: float = 0.0

    def draw(self, rng, rounds):
        """Return (host, VM) in each round."""
        vm = wandering(rng, rounds, self.vm)
        if self.host:
            return wandering(rng, rounds, self.host), vm
        return varying(rng, rounds, 0.02), vm


def _mean_log(low, high=None):
    """Return the mean logarithm of numbers drawn between two."""
    if high is None:
        return math.log(low)
    return (high * math.log(high) - low * math.log(low)) / (high - low) - 1


SYMMETRIC = [Modes(f"{100 * cv:.0f} %", variation=cv) for cv in (0.02, 0.05, 0.1)]
LAWS = (
    *SYMMETRIC,
    Modes("1 of 10 runs at 0.5 to 1", 0.1, (0.5, 1.0)),
    Modes("1 of 10 runs at half speed", 0.1, (0.5,)),
    Modes("1 of 5 runs at half speed", 0.2, (0.5,)),
    Modes("1 of 4 runs at half speed", 0.25, (0.5,)),
    Modes("1 of 5 runs at 0.4, each mode 5 %", 0.2, (0.4,), 0.05),
    Modes("1 of 5 runs stalls, at 0.1", 0.2, (0.1,)),
    Modes("1 of 10 runs stalls, at 0.1", 0.1, (0.1,)),
    Drift("AR(1), 0.9, 5 %, host and VM", 0.05, 0.05),
    Drift("AR(1), 0.9, 10 %, host and VM", 0.1, 0.1),
    Drift("AR(1), 0.9, 20 %, the VM alone", 0.2),
)
# Twenty rounds miss a mode in a tenth of the runs in 12 % of cases, and a drift may
# take longer than they.
NOT_IN_AN_HOUR = frozenset(law.name for law in (LAWS[-4], LAWS[-1]))
BETWEEN = (0.75, 0.8, 0.9)
# Of throughput, and of the 99.9th percentile of latency.
EQUAL = ((0.02, 0.1), (0.05, 0.3), (0.1, 0.3), (0.1, 0.5))


def is_proven(host, vm, endpoint):
    """Return whether a figure of a VM passes, as one of all that have to.

    :param host: speed in each round, and so ``vm``; of latencies the inverse is judged
    """
    better, target = endpoint
    ratios = vm / host if better == "higher" else host / vm
    rows = VMS * len(ENDPOINTS)
    return judge(estimate(ratios), target, better, rows).level is Level.OK


def of_one(rng, rounds, law, part, endpoint=HIGHER):
    """Return whether one VM is proven by one endpoint; all others are let pass.

    :param part: VM / host
    """
    host, vm = law.draw(rng, rounds)
    return is_proven(host, part * vm, endpoint)


def of_all(rng, rounds, variation, tail):
    """Return whether two VMs as fast as their host are proven by all endpoints."""
    for endpoint in ENDPOINTS:
        cv = tail if endpoint is TAIL else variation
        host = sum(varying(rng, rounds, cv) for _ in range(VMS)) / VMS
        for _ in range(VMS):
            if not is_proven(host, varying(rng, rounds, cv), endpoint):
                return False
    return True


def rates(trial, *args, trials=TRIALS, seeds=SEEDS):
    """Return the part of the trials that is proven, for each seed."""
    found = []
    for seed in seeds:
        rng = np.random.default_rng([seed, *map(ord, repr(args))])
        found.append(sum(trial(rng, *args) for _ in range(trials)) / trials)
    return found


def tables(trials):
    """Yield the tables as text."""
    by_rounds = [f"{rounds} rounds" for rounds in ROUNDS]
    how = f"worst of {len(SEEDS)} seeds, %"

    def cells(worst, trial, *args, trials=trials):
        found = (rates(trial, n, *args, trials=trials) for n in ROUNDS)
        return [f"{100 * worst(of_seeds):.1f}" for of_seeds in found]

    yield coverage.as_csv(
        f"Proven of VMs at 0.9 of the target, {trials} trials each, {how}",
        ("Noise", *by_rounds),
        ((law.name, *cells(max, of_one, law, 0.9 * TARGET)) for law in LAWS),
    )
    few = trials // 10
    yield coverage.as_csv(
        f"Proven of two VMs as fast as their host, {few} trials each, {how}",
        ("Throughput", "p99.9", *by_rounds),
        (
            (
                *(f"{100 * cv:.0f} %" for cv in noise),
                *cells(min, of_all, *noise, trials=few),
            )
            for noise in EQUAL
        ),
    )
    some = trials // 5
    yield coverage.as_csv(
        f"Proven of VMs by one figure of theirs, {some} trials each, {how}",
        ("VM / host", "Variation", *by_rounds),
        (
            (part, law.name, *cells(worst, of_one, law, part, trials=some))
            for part, worst in ((TARGET, max), *((p, min) for p in BETWEEN))
            for law in SYMMETRIC
        ),
    )


if __name__ == "__main__":
    sys.exit(coverage.main(TRIALS, tables, *map(int, sys.argv[1:])))
