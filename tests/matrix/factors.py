# SPDX-License-Identifier: Apache-2.0
"""The factors of the matrix, what of them makes no sense together, and its rows."""

import itertools
import random
import re
from typing import NamedTuple

from allpairspy import AllPairs

NOTHING = "-"
# A failed request leaves a server that nothing can be done to.
CREATING = ("boot", "several", "at once", "forced", "reschedule")
SEVERAL = ("several", "at once")
MOVING = ("cold", "live", "resize", "revert", "evacuate")
FACTORS = {
    "scheme": ("slots", "units", "cells", "none"),
    # several: in one request; at once: requests at the same moment; forced: several
    # to a host that no filter is asked about; reschedule: the first build fails, and
    # Nova goes on with an alternate.
    "operation": (*CREATING, *MOVING, "unshelve", "rebuild"),
    # The class of 20 vCPUs, its VMs of before it got fewer, VMs over two NUMA nodes,
    # of 4 vCPUs, and general ones.
    "size": ("class", "former", "two", "small", "general"),
    "pages": (NOTHING, "small", "large", "2MB", "1GB"),
    "emulator": (NOTHING, "share", "isolate"),
    "threads": (NOTHING, "prefer", "require", "isolate"),
    # What a vCPU gets of hosts with SMT; nothing: hosts have none.
    "smt": (NOTHING, "cores", "threads"),
    "pci": ("none", "legacy", "preferred", "required", "socket"),
    # The NUMA node that has the one device of each host.
    "device": ("0", "1"),
    "counted": ("no", "yes"),
    # NUMA nodes that an image lists by hand.
    "numa": ("none", "even", "uneven cpus", "uneven memory"),
    "group": ("none", "affinity", "anti-affinity"),
    # Who is there already: on two hosts VMs like the one that comes, without a
    # device, or on another host one of the other class.
    "beside": ("nobody", "alike", "other"),
    "exclusive": ("host", "none"),
    "most": (NOTHING, "2"),
    "traits": (NOTHING, "CUSTOM_FAST"),
    "managed": ("all", "labelled"),
}
# Keys of a class in the policy, and the factor that varies each.
KEYS = dict.fromkeys(("vcpus", "former_vcpus", "cpu_policy", "numa_nodes"), "size") | {
    "cpu_thread_policy": "threads",
    "smt": "smt",
    "emulator_threads": "emulator",
    "max_per_host": "most",
    "exclusive": "exclusive",
    "mem_page_size": "pages",
    "host_traits": "traits",
    "disk": "numa",
}
# Keys that vary with no factor, and why.
NO_FACTOR = {
    "name": "names choose no host",
    "default": "each policy has one default class: that of general VMs",
    "vif_multiqueue": "queues are no resource that a VM claims",
    "flavors": "the sizes that the rows boot",
} | dict.fromkeys(
    (
        *("guest_topology", "locked_memory", "packed_ring", "pmu", "realtime"),
        *("maxphysaddr", "extra_specs", "image_properties"),
    ),
    "the guest's own; tests/functional/test_nova_keys.py boots each",
)
# Values of keys that no row has, and why.
NO_VALUE = {
    ("exclusive", "cell"): "of mixed hosts, which tests/random has",
}


class Row(NamedTuple("Row", [(name, str) for name in FACTORS])):
    """One value of each factor."""

    __slots__ = ()

    def __str__(self):
        return ", ".join(f"{n}={v}" for n, v in self._asdict().items())

    @classmethod
    def parse(cls, text):
        """Read what ``str`` has written."""
        return cls(**dict(part.strip().split("=") for part in text.split(",")))

    @property
    def pinned(self):
        return self.size != "general"


# How reasons begin that are the policy's.
REFUSED = "the policy is refused: "
# {what has no row: why}
CONSTRAINTS = {
    "scheme=units, size=two": f"{REFUSED}a child of units is one NUMA node",
    "scheme=units, exclusive!=host": f"{REFUSED}units keep classes apart by host",
    "scheme=cells, size=two, emulator=isolate": (
        f"{REFUSED}cells cannot tell on which node the emulator's CPU is"
    ),
    "threads=require, smt=cores": f"{REFUSED}siblings are for smt: threads",
    "threads=require, smt=-": "hosts without SMT have no siblings",
    "threads=isolate, smt!=-": f"{REFUSED}Nova wants hosts without SMT for isolate",
    "size=general, emulator!=-": "VMs that share CPUs have no emulator threads apart",
    "size=general, threads!=-": "VMs that share CPUs choose no threads",
    f"size=former, operation={'|'.join(CREATING)}": "no new VM is of a former size",
    "size=class|former|small, numa=uneven cpus|uneven memory": (
        "one NUMA node is divided evenly"
    ),
    "size=two, numa=uneven cpus|uneven memory, operation!=boot": (
        "a class is split evenly: the VM is refused when it is created"
    ),
    "numa!=none, operation=resize": (
        "an image that lists CPUs and memory is for one flavor"
    ),
    "pci!=none, operation=live": (
        "Nova migrates devices live only where their alias says so"
    ),
    f"group=affinity, operation={'|'.join(MOVING)}": (
        "Nova lets no member of an affinity group leave its host"
    ),
    "group=affinity, beside=alike, operation=reschedule": (
        "where a VM has one host to go to, there is no alternate"
    ),
    f"group=affinity, pci!=none, operation={'|'.join(SEVERAL)}": (
        "a host has one device"
    ),
    f"group=affinity, beside=alike, most=2, operation={'|'.join(SEVERAL)}": (
        "with the VM beside them they exceed max_per_host"
    ),
    f"group=affinity, beside=alike, size=class|two, operation={'|'.join(SEVERAL)}": (
        "a host has room for two of them, and there would be three"
    ),
    "pci!=none, operation=forced": "a host has one device",
    "scheme=units, size!=general, operation=forced": (
        "Nova gives each VM of a forced request the same child"
    ),
    "scheme=cells, size=class, operation=forced": (
        "Nova gives each VM of a forced request the same NUMA node"
    ),
    "group=affinity, beside=alike, operation=forced": (
        "nova-compute refuses one of two that come where no member is, by the moment"
    ),
    "group=anti-affinity, operation=forced": (
        "nova-compute keeps members apart, whoever forces them"
    ),
}


def broken_by(text):
    """Return {factor: values} of a constraint."""
    found = {}
    for part in text.split(", "):
        factor, mark, values = re.fullmatch(r"(\w+)(!?=)(.*)", part).groups()
        values = values.split("|")
        if unknown := {*values} - {*FACTORS[factor]}:
            raise ValueError(f"{text}: {unknown} are no values of {factor}")
        found[factor] = [v for v in FACTORS[factor] if (v in values) == (mark == "=")]
    return found


_BROKEN_BY = {text: broken_by(text) for text in CONSTRAINTS}


def refusals(values, *, but=None):
    """Return the constraints that values of some factors break, of {factor: value}.

    :param but: a constraint that does not count
    """
    return [
        text
        for text, broken in _BROKEN_BY.items()
        if text != but and all(values.get(f) in each for f, each in broken.items())
    ]


def complete(values, rng, *, but=None):
    """Return a row with these values; None where constraints exclude all."""
    if refusals(values, but=but):
        return None
    missing = [name for name in FACTORS if name not in values]
    if not missing:
        return Row(**values)
    name = missing[0]
    order = rng.sample(FACTORS[name], len(FACTORS[name]))
    if name == "numa" and rng.random() < 2 / 3:
        # explain is not asked about images that list NUMA nodes.
        order.sort(key="none".__ne__)
    for value in order:
        if found := complete(values | {name: value}, rng, but=but):
            return found
    return None


def tuples(row, names):
    """Return the row's values of each of these groups of factors."""
    return {tuple((name, getattr(row, name)) for name in each) for each in names}


def pairs():
    """Return rows in which all pairs of values meet that make sense."""
    found = [
        Row(*row)
        for row in AllPairs(
            list(FACTORS.values()),
            filter_func=lambda known: (
                not refusals(dict(zip(FACTORS, known, strict=False)))
            ),
        )
    ]
    # AllPairs ends at the first row that adds nothing, and may leave pairs out.
    return found + _lacking(found, list(itertools.combinations(FACTORS, 2)))


def triples():
    """Return rows in which each scheme, PCI policy and operation meet."""
    return _lacking([], [("scheme", "pci", "operation")])


def _lacking(rows, names):
    """Return rows for the combinations of these factors that rows lack."""
    rng = random.Random(1)
    known = {combination for row in rows for combination in tuples(row, names)}
    found = []
    for each in names:
        for values in itertools.product(*(FACTORS[name] for name in each)):
            combination = tuple(zip(each, values, strict=True))
            if combination not in known:
                row = complete(dict(combination), rng)
                if row:
                    found.append(row)
                    known |= tuples(row, names)
    return found


def sample(seed, count=4):
    """Return some rows: of other operations each, and of each scheme alike many."""
    operations = random.Random(seed).sample(FACTORS["operation"], count)
    schemes = itertools.cycle(FACTORS["scheme"])
    return [
        complete({"scheme": next(schemes), "operation": each}, random.Random(number))
        for number, each in enumerate(operations, start=seed * count)
    ]
