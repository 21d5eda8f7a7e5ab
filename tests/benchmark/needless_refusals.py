# SPDX-License-Identifier: Apache-2.0
"""How many concurrent requests elastic hosts refuse although there is room.

The in-process Nova and Placement, elastic hosts of two slots, as many
high-performance VMs at once as there are slots.  All are gone before the next
round.  A refusal is needless here whenever there is one.

    python -m tests.benchmark.needless_refusals [ROUNDS]
"""

import multiprocessing
import sys
from concurrent import futures

from tests.benchmark.command import tell
from tests.cloud import DEFAULT_FILTERS
from tests.embedded import FILTERS_WITHOUT_PERFVM, at_once
from tests.functional.test_elastic import HIGH, ElasticCase

ROUNDS = 15
# How many hosts are filled at once.
HOSTS = (1, 3)
ORDERS = {"no filter": FILTERS_WITHOUT_PERFVM, "PerfVMFilter": DEFAULT_FILTERS}


class Rig(ElasticCase):
    """A cloud to boot servers in; no test."""

    # Many rounds, and all the clean-up between them.
    PATIENCE = 20

    def runTest(self):  # noqa: N802
        """Do nothing: unittest wants a method to exist."""

    def refused(self, hosts, rounds):
        """Fill all slots at once, so many times; return how many VMs failed."""
        failed = 0
        for number in range(rounds):
            servers = self.cloud.boot_at_once([HIGH] * 2 * hosts)
            failed += len(servers) - len(self.active(servers))
            at_once(self.servers.delete, servers)
            self.cloud.run_periodics()
            tell(f"{number + 1} of {rounds}")
        tell("")
        return failed


def measure(order, hosts, rounds):
    """Return (VMs refused, VMs asked for).

    :param order: one of ORDERS
    """
    rig = Rig()
    rig.FILTERS = ORDERS[order]
    rig.setUp()
    try:
        rig.start(*[f"e{number}" for number in range(hosts)])
        return rig.refused(hosts, rounds), rounds * 2 * hosts
    finally:
        rig.doCleanups()


def main(rounds):
    """Print the table."""
    heads = [f"{2 * hosts} at once" for hosts in HOSTS]
    sys.stdout.write("".join(head.rjust(22) for head in ["refused", *heads]) + "\n")
    # Each cloud in a process of its own: it leaves files open behind it.
    with futures.ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), max_tasks_per_child=1
    ) as processes:
        for order in ORDERS:
            sys.stdout.write(f"{order:>22}")
            for hosts in HOSTS:
                failed, asked = processes.submit(measure, order, hosts, rounds).result()
                sys.stdout.write(f"{failed} of {asked}".rjust(22))
                sys.stdout.flush()
            sys.stdout.write("\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
