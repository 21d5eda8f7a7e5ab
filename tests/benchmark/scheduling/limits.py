# SPDX-License-Identifier: Apache-2.0
"""What a limit of allocation candidates loses: hosts that nobody looks at.

Placement gives all candidates once, and of these the first ones, or some at random,
are given to nova-scheduler: what Placement does when it is asked for so many.  The
hosts' states are read once as well; filters and weighers are the real ones.
"""

import copy
import random
import statistics

from nova.conf import CONF
from nova.scheduler import utils

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

# By what is asked for, and of which hosts: those of the filter alone, where
# Placement's counts cannot tell, and the same with Placement's layer.
CASES = (
    ("no cpu sets", "filter", HIGH),
    ("no cpu sets", "units", HIGH),
    ("30-CPU nodes", "filter", HIGH),
    ("30-CPU nodes", "slots", HIGH),
    ("dedicated", "filter", HIGH),
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
        self.hosts_seen = 0

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
        self.hosts_seen = len(found)
        return iter(found if self.lasting else [copy.copy(state) for state in found])


def draw(place, manager, spec_of, requests):
    """Return what becomes of requests; runs in a scheduler process.

    :param place: places a request
    :param requests: each (limit, seed or None, how many)
    """
    answers = []
    with Sampled(manager) as sampled:
        placed = place(spec_of())
        answers.append([placed.service_host if placed else None])
        for limit, seed, count in requests:
            sampled.limit = limit
            sampled.draw = None if seed is None else random.Random(seed)
            found = [place(spec_of()) for _ in range(count)]
            answers.append([one.service_host if one else None for one in found])
    return answers


def arrive(place, manager, spec_of, limit, seed, count):
    """Return the host of each of so many VMs that come one after the other."""
    with Sampled(manager) as sampled:
        sampled.limit, sampled.lasting = limit, True
        sampled.draw = None if seed is None else random.Random(seed)
        found = [place(spec_of()) for _ in range(count)]
    return [one.service_host if one else None for one in found]


def starving(rig, hosts, draws, tell, taken=TAKEN, cases=CASES):
    """Return how many requests are refused though a host would take them.

    Candidates are drawn at random: [placement]randomize_allocation_candidates.
    """
    records = []
    for name, scheme, request in cases:
        pool = POOLS[name]
        for share in taken:
            rig.fill(pool, hosts, share)
            # Where all hosts are shown, one request is like the next.
            asked = [(each, SEED, 1 if each >= hosts else draws) for each in LIMITS]
            everything, answers = _drawn(rig, Arm(scheme, REPLACEMENT), request, asked)
            tell(f"limits: {name}, {scheme}, {request}, {share:.0%}")
            for (limit, _, count), placed in zip(asked, answers, strict=True):
                records.append(
                    {
                        "pool": name,
                        "scheme": scheme,
                        "request": request,
                        "hosts": hosts,
                        "taken": share,
                        "limit": limit,
                        "room": everything != [None],
                        "requests": count,
                        "refused": placed.count(None),
                    }
                )
    return records


def _drawn(rig, arm, request, asked):
    """Let two processes draw, one of them for what takes longest.

    Return the answer where everything is shown, and one for each that is asked.
    """
    longest = max(asked, key=lambda one: one[0] * one[2])
    parts = [longest], [one for one in asked if one is not longest]
    received = rig.at_once(
        (rig.scheduler(arm, number), "draw", ASKED[request], part)
        for number, part in enumerate(parts)
    )
    found = {}
    for part, (_, *answers) in zip(parts, received, strict=True):
        found.update(zip(part, answers, strict=True))
    everything = received[0][0]
    return everything, [found[one] for one in asked]


def filling(rig, hosts, tell, limits=FILLED):
    """Return how many VMs an empty pool takes until one is refused.

    Placement shows the same hosts each time: its order is that of a set, which a
    process keeps as long as it lives.
    """
    pool = POOLS["no cpu sets"]
    rig.fill(pool, hosts, 0)
    process = rig.scheduler(Arm("filter", REPLACEMENT))
    records = []
    for limit in limits:
        count = HIGH_PER_HOST * min(limit, hosts) + 1
        placed = process.ask("arrive", ASKED[HIGH], limit, None, count)
        tell(f"filling: {limit}")
        records.append(
            {
                "hosts": hosts,
                "limit": limit,
                "asked": count,
                "placed": len(placed) - placed.count(None),
                "room": HIGH_PER_HOST * hosts,
            }
        )
    return records


def packing(rig, hosts, tell):
    """Return how many hosts lose their slots to general VMs that fit onto one."""
    pool = POOLS["no cpu sets"]
    rig.fill(pool, hosts, 0)
    records = []
    arm, seeds = Arm("units", REPLACEMENT), (None, SEED)
    for limit in LIMITS:
        # At the same time: what is counted is not time.
        received = rig.at_once(
            (rig.scheduler(arm, n), "arrive", ASKED[GENERAL], limit, seed, ARRIVALS)
            for n, seed in enumerate(seeds)
        )
        for seed, placed in zip(seeds, received, strict=True):
            tell(f"packing: {limit}, {'random' if seed else 'in order'}")
            records.append(
                {
                    "hosts": hosts,
                    "limit": limit,
                    "random": seed is not None,
                    "vms": ARRIVALS,
                    "hosts_used": len(set(placed)),
                    "refused": placed.count(None),
                }
            )
    return records


# [placement] of placement.conf, and what it is called.
STRATEGIES = {
    "default": {},
    "random": {"randomize_allocation_candidates": "true"},
    "breadth-first": {"allocation_candidates_generation_strategy": "breadth-first"},
    "breadth-first, random": {
        "allocation_candidates_generation_strategy": "breadth-first",
        "randomize_allocation_candidates": "true",
    },
    "breadth-first, at most as many as hosts": {
        "allocation_candidates_generation_strategy": "breadth-first",
        "max_allocation_candidates": "{hosts}",
    },
    "breadth-first, random, at most as many as hosts": {
        "allocation_candidates_generation_strategy": "breadth-first",
        "randomize_allocation_candidates": "true",
        "max_allocation_candidates": "{hosts}",
    },
}


def elastic(rig, hosts, rounds, tell):
    """Return how many idle elastic hosts each strategy of Placement shows."""
    rig.fill(POOLS["no cpu sets"], hosts, 0)
    records = []
    for name, given in STRATEGIES.items():
        options = {key: value.format(hosts=hosts) for key, value in given.items()}
        for limit in (1000, 100):
            process = rig.scheduler(Arm("units", REPLACEMENT, limit), **options)
            process.ask("schedule", ASKED[HIGH])
            samples = [process.ask("schedule", ASKED[HIGH]) for _ in range(rounds)]
            tell(f"elastic: {name}, {limit}")
            spent = {
                name: statistics.median(sample[name] for sample in samples)
                for name in ("scheduler_ms", "placement_ms")
            }
            first = samples[0]
            seen = {"candidates": first["candidates"], "hosts_seen": first["hosts"]}
            where = {"strategy": name, "limit": limit, "hosts": hosts}
            records.append(where | seen | spent)
    return records
