# SPDX-License-Identifier: Apache-2.0
"""What Placement itself spends on granular groups, and on children of hosts."""

import dataclasses
import itertools
import statistics

from nova import context as nova_context
from nova.scheduler import utils

from tests.benchmark.command import tell
from tests.benchmark.scheduling import flavors
from tests.benchmark.scheduling.pools import MIXED_POOLS, POOLS
from tests.benchmark.scheduling.rows import children

# The hosts of a scheme, and flavors: each without the scheme's groups first.
_CELLS = (MIXED_POOLS["4 to 20 vCPUs"], ("p.16c", "p.16c", "w.16c"))
_UNITS = (POOLS["no cpu sets"], ("g.2c.4g", "g.2c.4g"))
CASES = {"cells": _CELLS, "units": _UNITS, "units4": _UNITS, "units8": _UNITS}
TAKEN = (0.0, 0.95)
_WARM_HOSTS = 5
_OPTIMIZED = {"optimize_for_wide_provider_trees": "true"}


def groups(rig, options):
    """Return a record for each scheme, share taken and request.

    The requests and both settings of Placement take turns.
    """
    records = []
    for scheme, (hosts, asked) in CASES.items():
        both = rig.placement(scheme), rig.placement(scheme, **_OPTIMIZED)
        queries = [
            query(scheme if index else "stock", name)
            for index, name in enumerate(asked)
        ]
        pool = dataclasses.replace(hosts, schemes=(scheme,))
        # Each process reads what it reads once.
        rig.fill(pool, _WARM_HOSTS, 0)
        for one, placement in [*itertools.product(queries, both)] * 4:
            placement.measure(one)
        for share in TAKEN:
            rig.fill(pool, options.study_hosts, share)
            spent = {(q, p): [] for q in queries for p in both}
            for number in range(options.rounds):
                for (one, placement), found in spent.items():
                    found.append(placement.measure(one))
                tell(f"{scheme}, {share:.0%}, {number + 1}")
            for name, one in zip(asked, queries, strict=True):
                plain, optimized = (
                    statistics.median(cpu_ms for cpu_ms, _ in spent[one, placement])
                    for placement in both
                )
                [(_, found), *_] = spent[one, both[0]]
                records.append(
                    {
                        "scheme": scheme.rstrip("48"),
                        "children": len(children(scheme, 0)),
                        "hosts": options.study_hosts,
                        "flavor": name,
                        "groups": one.count("resources_"),
                        "taken": share,
                        "candidates": len(found["allocation_requests"]),
                        "cpu_ms": round(plain, 1),
                        "optimized_ms": round(optimized, 1),
                    }
                )
    return records


def query(scheme, name):
    """Return what nova-scheduler asks Placement for a VM of a flavor."""
    context = nova_context.get_admin_context()
    spec = flavors.request(context, scheme, name)
    found = utils.ResourceRequest.from_request_spec(spec).to_querystring()
    return f"/allocation_candidates?{found}"
