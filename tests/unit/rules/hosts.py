# SPDX-License-Identifier: Apache-2.0
"""Hosts and requests for the rules' tests, as the scheduler would see them."""

import dataclasses

from hypothesis import strategies as st

from nova_perfvm.facts import (
    AskedResource,
    AskedTrait,
    HostFacts,
    NUMACell,
    RequestCell,
    RequestFacts,
)
from nova_perfvm.policy import HostShape, loader

POLICY = loader.load()
HP = POLICY.get_class("high-performance")
GENERAL = POLICY.get_class("general")

HP_CARRIES = {
    "resources": (AskedResource("", "CUSTOM_PERFVM_SLOT", 1),),
    "traits": (AskedTrait("", "CUSTOM_PERFVM_HIGH_PERFORMANCE", "required", "flavor"),),
}


def policy(general=None, managed_hosts="all", **high_performance):
    """Return the built-in policy with some keys of its classes changed."""
    return dataclasses.replace(
        POLICY,
        classes=(
            dataclasses.replace(HP, **high_performance),
            dataclasses.replace(GENERAL, **(general or {})),
        ),
        managed_hosts=managed_hosts,
    )


def host(shape="2x20", mode="dedicated", pinned=(), memory_gb=500, **facts):
    """Return a host of a shape.

    :param mode: dedicated, shared, open, or a set of CPUs that are dedicated
        while the rest is shared
    :param pinned: CPUs that are pinned
    """
    shape = HostShape.parse(shape) if isinstance(shape, str) else shape
    per_cell = shape.cores * shape.threads
    cells = []
    for index in range(shape.cells):
        cpus = frozenset(range(index * per_cell, (index + 1) * per_cell))
        if isinstance(mode, str):
            dedicated = cpus if mode in {"dedicated", "open"} else frozenset()
            shared = cpus if mode in {"shared", "open"} else frozenset()
        else:
            dedicated = cpus & frozenset(mode)
            shared = cpus - dedicated
        cells.append(
            NUMACell(
                id=index,
                cpuset=shared,
                pcpuset=dedicated,
                pinned_cpus=cpus & frozenset(pinned),
                memory_mb=memory_gb * 1024 // shape.cells,
                memory_usage_mb=0,
                siblings=[
                    frozenset(range(first, first + shape.threads))
                    for first in range(min(cpus), max(cpus) + 1, shape.threads)
                ],
            )
        )
    return HostFacts("hp1", "hp1", cells, **facts)


def hp_request(**facts):
    """Return a request for a high-performance VM, right in every respect."""
    given = {
        "flavor": "hp.20c.64g",
        "class_name": "high-performance",
        "vcpus": 20,
        "memory_mb": 65536,
        "cells": (RequestCell(0, 20, 65536),),
        "multiqueue": True,
        "volume_backed": True,
    }
    return RequestFacts(**given | HP_CARRIES | facts)


def general_request(**facts):
    """Return a request for a general VM."""
    given = {"flavor": "g.2c.4g", "class_name": None, "vcpus": 2, "memory_mb": 4096}
    return RequestFacts(**given | facts)


def pinned_request(vcpus=4, **facts):
    """Return a request for a pinned VM of no class."""
    cells = (RequestCell(0, vcpus, 4096),)
    return general_request(
        **{"flavor": "pinned", "vcpus": vcpus, "cells": cells} | facts
    )


shapes = st.builds(
    HostShape,
    cells=st.integers(1, 8),
    cores=st.integers(1, 48),
    threads=st.sampled_from([1, 2, 4]),
)


@st.composite
def hosts(draw):
    """Draw a host of any shape and mode, some of whose CPUs are pinned."""
    shape = draw(shapes)
    every = range(shape.cpus)
    mode = draw(
        st.one_of(
            st.sampled_from(["dedicated", "shared", "open"]),
            st.frozensets(st.sampled_from(every)),
        )
    )
    pinned = frozenset()
    if mode != "shared":
        allowed = every if isinstance(mode, str) else sorted(mode)
        # Whole shares as well as strays.
        start = draw(st.sampled_from([0, *allowed]))
        length = draw(st.sampled_from([0, 1, 4, 10, 20, 40]))
        pinned = frozenset(allowed) & frozenset(range(start, start + length))
    return host(
        shape,
        mode,
        pinned,
        memory_gb=draw(st.sampled_from([0, 64, 500, 2000])),
        vcpus_used=draw(st.integers(0, 100)),
        num_instances=draw(st.integers(0, 10)),
        labels=draw(
            st.frozensets(st.sampled_from(["high-performance", "general", "typo"]))
        ),
    )


requests = st.one_of(
    st.builds(
        hp_request,
        vcpus=st.sampled_from([16, 20]),
        multiqueue=st.booleans(),
        volume_backed=st.sampled_from([True, False, None]),
    ),
    st.builds(general_request, class_name=st.sampled_from([None, "general", "typo"])),
    st.builds(pinned_request, vcpus=st.integers(1, 40)),
)
