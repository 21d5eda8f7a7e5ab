# SPDX-License-Identifier: Apache-2.0
"""How many concurrent requests elastic hosts refuse although there is room.

The in-process Nova and Placement, elastic hosts of two slots, as many
high-performance VMs at once as there are slots: created, several in one request,
or evacuated.  All are gone before the next round.  Rows differ in the children
that Nova tries to claim.  A refusal is needless here whenever there is one.

    python -m tests.benchmark.needless_refusals [ROUNDS]
"""

import multiprocessing
import sys
import uuid
from concurrent import futures

import fixtures

from nova_perfvm.sandbox.embedded import DEFAULT_FILTERS, FILTERS_WITHOUT_PERFVM
from nova_perfvm.sandbox.embedded.servers import at_once
from tests.functional.test_elastic import GENERAL, HIGH, ElasticCase

ROUNDS = 15
MODULE = "nova_perfvm.scheduler.candidates"


def by_uuid(spec_obj):
    """Return a number as good as drawn at random."""
    return uuid.UUID(spec_obj.instance_uuid).int


# The filters, and what is replaced in MODULE.  With MANY_HOSTS = 0 each host
# passes once, however many children it has.
ONCE = {"MANY_HOSTS": 0}
ORDERS = {
    "one claim: the first, no filter": (FILTERS_WITHOUT_PERFVM, {}),
    "one claim: by instance UUID": (DEFAULT_FILTERS, ONCE | {"_turn": by_uuid}),
    "one claim: by request number": (DEFAULT_FILTERS, ONCE),
    "PerfVMFilter": (DEFAULT_FILTERS, {}),
}


class Rig(ElasticCase):
    """A cloud to boot servers in; no test."""

    # Many rounds, and all the clean-up between them.
    PATIENCE = 20

    def runTest(self):  # noqa: N802
        """Do nothing: unittest wants a method to exist."""

    def creates(self, hosts, _):
        """Create as many as there are slots; return (refused, servers)."""
        servers = self.cloud.boot_at_once([HIGH] * 2 * hosts)
        return len(servers) - len(self.active(servers)), servers

    def multi_creates(self, hosts, _):
        """Do the same with requests for two each."""
        with futures.ThreadPoolExecutor(hosts) as pool:
            asked = [pool.submit(self.cloud.boot, HIGH, count=2) for _ in range(hosts)]
            servers = [server for request in asked for server in request.result()]
        return len(servers) - len(self.active(servers)), servers

    def evacuations(self, hosts, number):
        """Evacuate a host with two VMs to the only other one."""
        del hosts
        source, target = ("e0", "e1") if number % 2 else ("e1", "e0")
        servers = [self.boot(HIGH, host=source)]
        if number % 4 < 2:
            # So that the numbers of the two requests are both odd, or both even.
            self.servers.delete(self.boot(GENERAL, host=target))
        servers.append(self.boot(HIGH, host=source))
        self.cloud.fail_host(source)
        moved = at_once(self.servers.evacuate, servers)
        refused = sum(isinstance(found, Exception) for found in moved)
        at_once(self.servers.delete, servers)
        (service,) = self.cloud.api.get_services(host=source, binary="nova-compute")
        self.cloud.api.put_service(service["id"], {"forced_down": False})
        # It finds out what has left it.
        self.cloud.restart_host(source)
        return refused, []

    def refused(self, load, hosts, rounds):
        """Fill all slots at once, so many times; return how many VMs failed."""
        failed = 0
        for number in range(rounds):
            count, servers = load(self, hosts, number)
            failed += count
            at_once(self.servers.delete, servers)
            self.cloud.run_periodics()
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{number + 1} of {rounds}\033[K\r")
        return failed


# What is asked for at once, and of how many hosts it would fill.
LOADS = {
    "2 creates, 1 host": (Rig.creates, 1),
    "6 creates, 3 hosts": (Rig.creates, 3),
    "2 x 2 in one request, 2 hosts": (Rig.multi_creates, 2),
    "2 evacuations, 1 host": (Rig.evacuations, 1),
}


def measure(order, load, rounds):
    """Return (VMs refused, VMs asked for).

    :param order: one of ORDERS
    :param load: one of LOADS
    """
    filters, replaced = ORDERS[order]
    requests, hosts = LOADS[load]
    rig = Rig()
    rig.FILTERS = filters
    rig.setUp()
    try:
        for name, value in replaced.items():
            rig.useFixture(fixtures.MonkeyPatch(f"{MODULE}.{name}", value))
        spare = requests is Rig.evacuations
        rig.start(*[f"e{number}" for number in range(hosts + spare)])
        return rig.refused(requests, hosts, rounds), rounds * 2 * hosts
    finally:
        rig.doCleanups()


def main(rounds):
    """Print the table."""
    sys.stdout.write(f"{'refused without need':33}" + "  ".join(LOADS) + "\n")
    # Each cloud in a process of its own: it leaves files open behind it.
    with futures.ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), max_tasks_per_child=1
    ) as processes:
        for order in ORDERS:
            sys.stdout.write(f"{order:33}")
            for load in LOADS:
                failed, asked = processes.submit(measure, order, load, rounds).result()
                share = f"{failed} of {asked} ({100 * failed / asked:.0f} %)"
                sys.stdout.write(share.rjust(len(load)) + "  ")
                sys.stdout.flush()
            sys.stdout.write("\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
