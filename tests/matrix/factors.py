# SPDX-License-Identifier: Apache-2.0
"""The factors of the matrix, what of them makes no sense together, and its rows."""

import inspect
import itertools
import random
from typing import NamedTuple

from allpairspy import AllPairs

NOTHING = "-"
# A failed request leaves a server that nothing can be done to.
CREATING = ("boot", "several", "at once", "reschedule")
SEVERAL = ("several", "at once")
MOVING = ("cold", "live", "resize", "revert", "evacuate")
FACTORS = {
    "scheme": ("slots", "units", "cells", "none"),
    # several: in one request; at once: requests at the same moment; reschedule: the
    # first build fails, and Nova goes on with an alternate.
    "operation": (
        *CREATING,
        *MOVING,
        "unshelve",
        "rebuild",
    ),
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
# Keys of a class in the policy, and by which factor they vary.
KEYS = {
    "vcpus": "size",
    "former_vcpus": "size",
    "cpu_policy": "size",
    "numa_nodes": "size",
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
    "default": "there is one default class in each policy: that of general VMs",
    "vif_multiqueue": "nothing that is claimed depends on it",
    "flavors": "the sizes that the rows boot",
}
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


# (why, what must not be true of a row's values)
_CONSTRAINTS = (
    (
        f"{REFUSED}a child of units is one NUMA node, and keeps other classes off",
        lambda scheme, size: scheme == "units" and size == "two",
    ),
    (
        f"{REFUSED}units keep classes apart by host",
        lambda scheme, exclusive: scheme == "units" and exclusive != "host",
    ),
    (
        f"{REFUSED}cells cannot tell on which node the emulator's CPU is",
        lambda scheme, size, emulator: (
            scheme == "cells" and size == "two" and emulator == "isolate"
        ),
    ),
    (
        f"{REFUSED}sibling threads are for smt: threads",
        lambda threads, smt: threads == "require" and smt == "cores",
    ),
    (
        "no host without SMT has sibling threads",
        lambda threads, smt: threads == "require" and smt == NOTHING,
    ),
    (
        f"{REFUSED}Nova takes isolate for hosts without SMT only",
        lambda threads, smt: threads == "isolate" and smt != NOTHING,
    ),
    (
        "VMs that share CPUs have none of these",
        lambda size, emulator, threads: (
            size == "general" and (emulator, threads) != (NOTHING, NOTHING)
        ),
    ),
    (
        "no new VM is of a former size",
        lambda operation, size: size == "former" and operation in CREATING,
    ),
    (
        "one NUMA node is divided evenly",
        lambda size, numa: numa.startswith("uneven") and size not in {"two", "general"},
    ),
    (
        "a class is split evenly: the VM is refused when it is created",
        lambda operation, size, numa: (
            numa.startswith("uneven") and size == "two" and operation != "boot"
        ),
    ),
    (
        "an image that lists CPUs and memory is for one flavor",
        lambda operation, numa: numa != "none" and operation == "resize",
    ),
    (
        "Nova migrates devices live only where their alias says so",
        lambda operation, pci: operation == "live" and pci != "none",
    ),
    (
        "Nova lets no member of an affinity group leave its host",
        lambda operation, group: group == "affinity" and operation in MOVING,
    ),
    (
        "where a VM has one host to go to, there is no alternate",
        lambda operation, group, beside: (
            operation == "reschedule" and group == "affinity" and beside == "alike"
        ),
    ),
    (
        "a host has one device",
        lambda operation, group, pci: (
            operation in SEVERAL and group == "affinity" and pci != "none"
        ),
    ),
    (
        "with the one that is there they are more than may be on a host",
        lambda operation, group, beside, most: (
            (operation in SEVERAL and group == "affinity" and beside == "alike")
            and most != NOTHING
        ),
    ),
)
# The same, with the names of its factors.
CONSTRAINTS = tuple(
    (why, what, tuple(inspect.signature(what).parameters)) for why, what in _CONSTRAINTS
)


def refusals(values, *, but=None):
    """Return why values of some factors make no row, of {factor: value}.

    :param but: a reason that does not count
    """
    return [
        why
        for why, what, names in CONSTRAINTS
        if why != but
        and values.keys() >= set(names)
        and what(*(values[name] for name in names))
    ]


def complete(values, rng, *, but=None):
    """Return a row that has these values, None if there is none."""
    if refusals(values, but=but):
        return None
    missing = [name for name in FACTORS if name not in values]
    if not missing:
        return Row(**values)
    name = missing[0]
    for value in rng.sample(FACTORS[name], len(FACTORS[name])):
        if found := complete(values | {name: value}, rng, but=but):
            return found
    return None


def tuples(row, names):
    """Return which of all combinations of values a row has, of so many factors."""
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
    # It ends as soon as it finds no row with something new.
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


def sample(seed):
    """Return some rows: each operation, and each scheme as often as the others."""
    rng = random.Random(seed)
    operations = FACTORS["operation"]
    return [
        complete({"scheme": scheme, "operation": operation}, rng)
        for scheme, operation in zip(
            itertools.cycle(FACTORS["scheme"]),
            rng.sample(operations, len(operations)),
            strict=False,
        )
    ]
