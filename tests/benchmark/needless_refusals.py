# SPDX-License-Identifier: Apache-2.0
"""How many concurrent creates elastic hosts refuse although there is room.

The in-process Nova and Placement, elastic hosts of two slots, as many
high-performance VMs at once as there are slots, all gone before the next round.
Rows differ in the child that a claim begins with.  A refusal is needless here
whenever there is one.

    python -m tests.benchmark.needless_refusals [ROUNDS]
"""

import sys
import uuid

import fixtures

from nova_perfvm.sandbox.embedded import DEFAULT_FILTERS, FILTERS_WITHOUT_PERFVM
from tests.functional.test_elastic import HIGH, ElasticCase

ROUNDS = 15
HOSTS = (1, 3)
TURN_OF = "nova_perfvm.scheduler.candidates.turn_of"


def by_uuid(spec_obj):
    """Return a number as good as drawn at random."""
    return uuid.UUID(spec_obj.instance_uuid).int


# How a claim's first child is chosen: the filters, and what replaces turn_of.
ORDERS = {
    "the first, no filter": (FILTERS_WITHOUT_PERFVM, None),
    "by the instance's UUID": (DEFAULT_FILTERS, by_uuid),
    "PerfVMFilter": (DEFAULT_FILTERS, None),
}


class Rig(ElasticCase):
    """A cloud to boot servers in; no test."""

    def runTest(self):  # noqa: N802
        """Do nothing: unittest wants a method to exist."""

    def refused(self, rounds, slots):
        """Fill all slots at once, so many times; return how many VMs failed."""
        failed = 0
        for number in range(rounds):
            servers = self.cloud.boot_at_once([HIGH] * slots)
            failed += slots - len(self.active(servers))
            self.servers.delete_at_once(servers)
            self.cloud.run_periodics()
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{number + 1} of {rounds}\033[K\r")
        return failed


def measure(filters, turn_of, hosts, rounds):
    """Return (VMs refused, VMs asked for)."""
    rig = Rig()
    rig.FILTERS = filters
    rig.setUp()
    try:
        if turn_of is not None:
            rig.useFixture(fixtures.MonkeyPatch(TURN_OF, turn_of))
        rig.start(*[f"e{number}" for number in range(hosts)])
        return rig.refused(rounds, 2 * hosts), rounds * 2 * hosts
    finally:
        rig.doCleanups()


def main(rounds):
    """Print the table."""
    heads = [f"{2 * hosts} at once, {hosts} host(s)" for hosts in HOSTS]
    sys.stdout.write(f"{'refused without need':26}" + "  ".join(heads) + "\n")
    for name, (filters, turn_of) in ORDERS.items():
        cells = []
        for head, hosts in zip(heads, HOSTS, strict=True):
            failed, asked = measure(filters, turn_of, hosts, rounds)
            share = f"{failed} of {asked} ({100 * failed / asked:.0f} %)"
            cells.append(share.rjust(len(head)))
        sys.stdout.write(f"{name:26}" + "  ".join(cells) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
