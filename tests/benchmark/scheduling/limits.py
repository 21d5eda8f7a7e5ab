# SPDX-License-Identifier: Apache-2.0
"""What a limit of allocation candidates loses: hosts that nobody looks at.

Placement gives all candidates once, and of these the first ones, or some at random,
are given to nova-scheduler: what Placement does when it is asked for so many.  The
hosts' states are read once as well; filters and weighers are the real ones.
"""

import copy
import itertools
import random
import statistics

from nova.conf import CONF
from nova.scheduler import utils

from tests.benchmark.command import tell
from tests.benchmark.scheduling.arms import REPLACEMENT, Arm
from tests.benchmark.scheduling.flavors import ASKED, GENERAL, HIGH
from tests.benchmark.scheduling.pools import HIGH_PER_HOST, POOLS

LIMITS = (1000, 300, 100, 50)
TAKEN = (0.5, 0.95, 0.99)
# Fewer than the CPUs of a host allow: all of them fit onto one.
ARRIVALS = 60
SEED = 20
# Limits whose filling takes minutes, not hours.
FILLED = (100, 50)
EVERYTHING = 1_000_000

# Draws of candidates at random.
DRAWS = 100

# Hosts of the filter alone, where Placement's counts cannot tell, and the same with
# Placement's layer.
CASES = (
    ("no cpu sets", "filter"),
    ("no cpu sets", "units"),
    ("30-CPU nodes", "filter"),
    ("30-CPU nodes", "slots"),
    ("dedicated", "filter"),
)


class Sampled:
    """A SchedulerManager that is shown some of the candidates there are."""

    def __init__(self, manager):
        self._client = manager.placement_client
        self._hosts = manager.host_manager
        self._states_of = self._hosts.get_host_states_by_uuids
        self._ask = self._client.get_allocation_candidates
        self._claim = utils.claim_resources
        self._answers, self._states = {}, None
        self.limit, self.draw, self.lasting = EVERYTHING, None, False

    def __enter__(self):
        CONF.set_override("max_placement_results", EVERYTHING, "scheduler")
        self._client.get_allocation_candidates = self._candidates
        self._hosts.get_host_states_by_uuids = self._host_states
        utils.claim_resources = lambda *_, **__: True
        return self

    def __exit__(self, *_):
        CONF.clear_override("max_placement_results", "scheduler")
        self._client.get_allocation_candidates = self._ask
        self._hosts.get_host_states_by_uuids = self._states_of
        utils.claim_resources = self._claim

    def _candidates(self, context, resources):
        key = resources.to_querystring()
        if key not in self._answers:
            self._answers[key] = self._ask(context, resources)
        found, summaries, version = self._answers[key]
        if self.limit < len(found):
            found = (
                self.draw.sample(found, self.limit)
                if self.draw
                else found[: self.limit]
            )
        roots = {
            summaries[p]["root_provider_uuid"] for c in found for p in c["allocations"]
        }
        kept = {
            uuid: each
            for uuid, each in summaries.items()
            if each["root_provider_uuid"] in roots
        }
        return copy.copy(found), kept, version

    def _host_states(self, context, compute_uuids, spec_obj):
        if self._states is None:
            every = [p for _, found, _ in self._answers.values() for p in found]
            made = self._states_of(context, every, spec_obj)
            self._states = {state.uuid: state for state in made}
        found = [self._states[u] for u in compute_uuids if u in self._states]
        return iter(found if self.lasting else [copy.copy(state) for state in found])


def arrive(place, manager, spec_of, limit, seed, count, *, lasting):
    """Return the host of each of so many VMs that come one after the other.

    Runs in a scheduler process.

    :param place: places a request
    :param limit: how many candidates are shown
    :param seed: candidates are drawn at random with it; None: the first ones
    :param lasting: whether VMs stay, and take their room from the next
    """
    with Sampled(manager) as sampled:
        sampled.limit, sampled.lasting = limit, lasting
        sampled.draw = None if seed is None else random.Random(seed)
        found = [place(spec_of()) for _ in range(count)]
    return [one.service_host if one else None for one in found]


def starving(rig, options):
    """Return how many requests are refused though a host would take them.

    Candidates are drawn at random: [placement]randomize_allocation_candidates.
    """
    hosts, records = options.study_hosts, []
    for (name, scheme), share in itertools.product(CASES, TAKEN):
        rig.fill(POOLS[name], hosts, share)
        process = rig.scheduler(Arm(scheme, REPLACEMENT))
        [room] = process.ask("arrive", ASKED[HIGH], EVERYTHING, None, 1)
        tell(f"limits: {name}, {scheme}, {share:.0%}")
        for limit in LIMITS:
            # Where all hosts are shown, one request is like the next.
            count = 1 if limit >= hosts else DRAWS
            placed = process.ask("draw", ASKED[HIGH], limit, SEED, count)
            records.append(
                {
                    "pool": name,
                    "scheme": scheme,
                    "request": HIGH,
                    "hosts": hosts,
                    "taken": share,
                    "limit": limit,
                    "room": room is not None,
                    "requests": count,
                    "refused": placed.count(None),
                }
            )
    return records


def filling(rig, options):
    """Return how many VMs an empty pool takes until one is refused.

    Placement shows the same hosts each time: its order is that of a set, which a
    process keeps as long as it lives.
    """
    hosts, records = options.study_hosts, []
    rig.fill(POOLS["no cpu sets"], hosts, 0)
    process = rig.scheduler(Arm("filter", REPLACEMENT))
    for limit in FILLED:
        count = HIGH_PER_HOST * min(limit, hosts) + 1
        placed = process.ask("arrive", ASKED[HIGH], limit, None, count)
        tell(f"filling: {limit}")
        records.append(
            {
                "hosts": hosts,
                "limit": limit,
                "placed": count - placed.count(None),
                "room": HIGH_PER_HOST * hosts,
            }
        )
    return records


def packing(rig, options):
    """Return how many hosts lose their slots to general VMs that fit onto one."""
    rig.fill(POOLS["no cpu sets"], options.study_hosts, 0)
    process = rig.scheduler(Arm("units", REPLACEMENT))
    records = []
    for limit in LIMITS:
        for name, seed in (("first ones", None), ("at random", SEED)):
            placed = process.ask("arrive", ASKED[GENERAL], limit, seed, ARRIVALS)
            tell(f"packing: {limit}, {name}")
            records.append(
                {
                    "limit": limit,
                    "candidates": name,
                    "vms": ARRIVALS,
                    "hosts_used": len(set(placed)),
                    "refused": placed.count(None),
                }
            )
    return records


# [placement] of placement.conf, and what it is called.
_RANDOM = {"randomize_allocation_candidates": "true"}
_BREADTH = {"allocation_candidates_generation_strategy": "breadth-first"}
_MOST = {"max_allocation_candidates": "{hosts}"}
STRATEGIES = {
    "default": {},
    "random": _RANDOM,
    "breadth-first": _BREADTH,
    "breadth-first, random": _BREADTH | _RANDOM,
    "breadth-first, at most as many as hosts": _BREADTH | _MOST,
    "breadth-first, random, at most as many as hosts": _BREADTH | _RANDOM | _MOST,
}


def elastic(rig, options):
    """Return how many idle elastic hosts each strategy of Placement shows."""
    hosts, records = options.study_hosts, []
    rig.fill(POOLS["no cpu sets"], hosts, 0)
    for (name, given), limit in itertools.product(STRATEGIES.items(), (1000, 100)):
        settings = {key: value.format(hosts=hosts) for key, value in given.items()}
        process = rig.scheduler(Arm("units", REPLACEMENT, limit), **settings)
        process.ask("schedule", ASKED[HIGH])
        samples = [process.ask("schedule", ASKED[HIGH]) for _ in range(options.rounds)]
        tell(f"elastic: {name}, {limit}")
        spent = {
            key: statistics.median(sample[key] for sample in samples)
            for key in ("scheduler_ms", "placement_ms")
        }
        seen = {
            "candidates": samples[0]["candidates"],
            "hosts_seen": samples[0]["hosts"],
        }
        where = {"strategy": name, "limit": limit, "hosts": hosts}
        records.append(where | seen | spent)
    return records
