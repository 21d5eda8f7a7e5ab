# SPDX-License-Identifier: Apache-2.0
"""The policy of a row, and what its VM is like."""

from tests.matrix.factors import NOTHING

PINNED, GENERAL = "high-performance", "general"
SHAPES = {NOTHING: "2x20", "cores": "2x20x2", "threads": "2x10x2"}
# GiB of memory before and after a resize.
SMALL_GB, LARGE_GB = 8, 16
ROOT_GB = 10


def vcpus_of(row):
    """Return the vCPUs of the VM, and those that its class has in the end."""
    large = 18 if row.emulator == "isolate" else 20
    sizes = {"class": large, "former": large, "two": 16, "small": 4, "general": 4}
    return sizes[row.size], large - 4 if row.size == "former" else sizes[row.size]


def nodes_of(row):
    """Return over how many NUMA nodes the VM is split; 0 where it floats."""
    by_hand = 0 if row.numa == "none" else 2
    return {"two": 2, "general": by_hand}.get(row.size, 1)


def document(row, *, former=False):
    """Return the policy of a row.

    :param former: as it was when VMs of the former size were new
    """

    def value(found):
        return None if found == NOTHING else found

    was, today = vcpus_of(row)
    source = "image" if row.numa != "none" else "volume"
    pages = {"mem_page_size": value(row.pages)}
    own = pages | {"host_traits": [] if row.traits == NOTHING else [row.traits]}
    # Elastic hosts have one pool for both.
    other = pages if row.scheme == "units" else {}
    pinned = {
        "vcpus": (was if former else today) if row.pinned else 20,
        "former_vcpus": [was] if was != today and not former else [],
        "cpu_policy": "dedicated",
        "numa_nodes": 2 if row.size == "two" else 1,
        "cpu_thread_policy": value(row.threads),
        "smt": value(row.smt) or "cores",
        "emulator_threads": value(row.emulator),
        "max_per_host": value(row.most) and int(row.most),
        "exclusive": row.exclusive,
        "disk": {"source": source if row.pinned else "volume"},
        "flavors": {
            "name": "hp.{vcpus}c.{memory_gb}g",
            "memory_gb": [SMALL_GB, LARGE_GB],
            "root_gb": ROOT_GB if row.pinned and source == "image" else 0,
        },
    }
    sizes = [
        {"vcpus": 4, "memory_gb": gb, "root_gb": ROOT_GB} for gb in (SMALL_GB, LARGE_GB)
    ]
    general = {
        "default": True,
        "cpu_policy": "shared",
        "flavors": {"name": "g.{vcpus}c.{memory_gb}g", "sizes": sizes},
    }
    return {
        "schema_version": "1.0",
        "host_shape": SHAPES[row.smt],
        "placement": row.scheme,
        "managed_hosts": row.managed,
        "classes": {
            PINNED: pinned | (own if row.pinned else other),
            GENERAL: general | (other if row.pinned else own),
        },
    }
