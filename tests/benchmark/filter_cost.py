# SPDX-License-Identifier: Apache-2.0
"""What our filters cost per host, beside Nova's NUMATopologyFilter.

All judge the same hosts in the same run and in turn, so that the ratios hold
on a busy machine too; the figures are microseconds of CPU time per host.
PerfVMNUMATopologyFilter is shown twice: hosts alike, and each in a state of its own.

    python -m tests.benchmark.filter_cost
"""

import gc
import logging
import statistics
import sys
import time

from nova.scheduler.filters import numa_topology_filter

from nova_perfvm.scheduler import filters, numa_filter
from tests.unit.scheduler import states

HOSTS = 1000
ROUNDS = 5
# The filter must not be felt beside the one that it stands before.
MOST_US = 10.0
MOST_RATIO = 1 / 20

PLAIN = {"name": "g.2c.4g", "vcpus": 2, "memory_mb": 4096, "extra_specs": {}}


def make_hosts(kind):
    """Return HOSTS hosts of 2 x 20 CPUs, idle or full."""
    hosts = []
    for number in range(HOSTS):
        topology = states.numa_topology(
            mempages=[(4, 250 * 1024 * 256, 0, 0), (1048576, 0, 0, 0)]
        )
        for cell in topology.cells[: 2 if kind == "full" else 0]:
            cell.pin_cpus(set(cell.pcpuset))
            cell.memory_usage = 65536
        pinned = sum(len(cell.pinned_cpus) for cell in topology.cells)
        hosts.append(
            states.host_state(
                f"host{number}",
                topology,
                vcpus_used=pinned,
                num_instances=pinned // 20,
            )
        )
    return hosts


def cost_us(host_filter, hosts, spec):
    """Return CPU microseconds per host of one pass, garbage left for later."""
    gc.collect()
    gc.disable()
    start = time.process_time()
    list(host_filter.filter_all(hosts, spec))
    spent = time.process_time() - start
    gc.enable()
    return spent / len(hosts) * 1e6


def tell_apart(hosts):
    """Give each host a state of its own, as far as bytes of memory go."""
    for number, host in enumerate(hosts):
        host.numa_topology.cells[-1].memory_usage += number
    return hosts


def main():
    """Print a table; exit 1 when the filter costs more than it may."""
    logging.disable(logging.WARNING)
    ours, theirs = filters.PerfVMFilter(), numa_topology_filter.NUMATopologyFilter()
    replacement = numa_filter.PerfVMNUMATopologyFilter()
    write = sys.stdout.write
    write(f"{HOSTS} hosts of 2 x 20 CPUs, median of {ROUNDS}, us of CPU per host\n")
    write(
        f"{'hosts':6} {'request':18} {'PerfVM':>8} {'NUMATopology':>13} {'ratio':>7}"
        f" {'replaced':>9} {'ratio':>6} {'unlike':>7} {'ratio':>6}\n"
    )
    bad = False
    for kind in ("empty", "full"):
        hosts, unlike = make_hosts(kind), tell_apart(make_hosts(kind))
        for name, spec in (
            ("high-performance", states.request_spec()),
            ("general", states.request_spec(**PLAIN)),
        ):
            costs = {"mine": [], "nova": [], "alike": [], "unlike": []}
            for _ in range(ROUNDS):
                for told, judge, judged in (
                    ("mine", ours, hosts),
                    ("alike", replacement, hosts),
                    ("unlike", replacement, unlike),
                    ("nova", theirs, hosts),
                ):
                    # A host that is refused has no candidates left for the next.
                    for host in judged:
                        host.allocation_candidates = [{"mappings": {"": [host.uuid]}}]
                    costs[told].append(cost_us(judge, judged, spec))
            ratios = {
                told: statistics.median(
                    x / y for x, y in zip(found, costs["nova"], strict=True)
                )
                for told, found in costs.items()
            }
            us = {told: statistics.median(found) for told, found in costs.items()}
            late = us["mine"] > MOST_US and ratios["mine"] > MOST_RATIO
            bad = bad or late
            write(
                f"{kind:6} {name:18} {us['mine']:8.1f} {us['nova']:13.1f} "
                f"{ratios['mine']:7.3f} {us['alike']:9.1f} {ratios['alike']:6.3f} "
                f"{us['unlike']:7.1f} {ratios['unlike']:6.3f}"
                f"{'  TOO SLOW' if late else ''}\n"
            )
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
