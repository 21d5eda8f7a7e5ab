# SPDX-License-Identifier: Apache-2.0
"""Policies and requests that the tests of host configurations share."""

import contextlib
import functools
import itertools
import json

from hypothesis import strategies as st

from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.generate.hosts import HostRequest, from_shape, generate
from nova_perfvm.placement.schemes import SCHEMES
from nova_perfvm.policy import HostShape, loader


def policy_of(placement="slots", host_shape="2x20", **changes):
    """Return the built-in policy with its pinned class changed."""
    document = loader.load().as_document()
    document |= {"placement": placement, "host_shape": host_shape}
    document["classes"]["high-performance"].update(changes)
    return loader.parse(json.dumps(document))


def host_request(
    shape="2x20", mode="dedicated", memory_gb=500, policy=None, **requested
):
    topology = from_shape(HostShape.parse(shape))
    if memory_gb is not None:
        topology = topology.with_memory(memory_gb)
    return HostRequest(policy or loader.load(), topology, mode, **requested)


def configured(*args, **kwargs):
    return generate(host_request(*args, **kwargs))


@functools.cache
def policies():
    """Return valid policies of every placement, by it."""
    keys = ("exclusive", "smt", "mem_page_size", "max_per_host")
    found = []
    for placement, values in itertools.product(
        SCHEMES,
        itertools.product(
            ("host", "cell"), ("cores", "threads"), (None, "large"), (None, 1, 2, 8)
        ),
    ):
        with contextlib.suppress(DocumentError):
            changes = dict(zip(keys, values, strict=True))
            found.append(policy_of(placement, **changes))
    return found


@st.composite
def configs(draw):
    """Return the configuration of any host that one can be made for."""
    policy = draw(st.sampled_from(policies()))
    shape = HostShape(
        draw(st.integers(1, 8)), draw(st.integers(1, 44)), draw(st.integers(1, 2))
    )
    (pinned,) = policy.pinned_classes
    modes = ["dedicated", "shared"]
    if policy.placement == "units" and pinned.mem_page_size is None:
        modes.append("elastic")
    if pinned.exclusive == "cell" and shape.cells > 1:
        modes.append("mixed")
    mode = draw(st.sampled_from(modes))
    return configured(
        str(shape),
        mode,
        draw(st.sampled_from([None, 200, 500, 2000])),
        policy,
        reserve=draw(st.integers(0, min(4, shape.cores - 1))),
        reserve_memory_gb=draw(st.integers(0, 8)),
        shared_nodes=draw(st.integers(1, shape.cells - 1)) if mode == "mixed" else 1,
    )
