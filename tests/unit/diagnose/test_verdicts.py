# SPDX-License-Identifier: Apache-2.0
"""NUMA nodes of requests on those of hosts."""

import dataclasses
import itertools

import fixtures
import testtools
from hypothesis import given
from hypothesis import strategies as st

from nova_perfvm import constants as const
from nova_perfvm.diagnose.verdicts import judge, settings_for
from nova_perfvm.facts import HostFacts, NUMACell, RequestCell, RequestFacts
from nova_perfvm.facts.demand import Demand, Request
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import INVENTORY_FILE, ComputeHost
from tests.unit.facts.snapshot.clouds import POLICY

# No rule looks at hosts that have no label.
ELSEWHERE = dataclasses.replace(POLICY, managed_hosts="labelled")

# 8 cells on 16 have 500 million orders: who tries them all does not end.
LIMIT_S = 120

# Free CPUs of either kind, of a host's cell or for one of a request.
SIZES = st.tuples(st.integers(0, 3), st.integers(0, 3))


def refused(wanted, offered):
    """Return whether NUMATopologyFilter would find no cells for a request.

    :param wanted: (vCPUs, pCPUs) of each cell of the request
    :param offered: (shared, free dedicated CPUs) of each cell of the host
    """
    cells = []
    for index, (shared, own) in enumerate(offered):
        first = 1000 * index
        cpuset = frozenset(range(first, first + shared))
        pcpuset = frozenset(range(first + 500, first + 500 + own + 1))
        # One CPU of each is taken.
        pinned = frozenset({first + 500})
        cells.append(NUMACell(index, cpuset, pcpuset, pinned, 1024, 0))
    request = Request(
        RequestFacts(
            flavor="pinned",
            class_name=None,
            vcpus=sum(map(sum, wanted)),
            memory_mb=1024,
            cells=tuple(RequestCell(*cell, 128) for cell in wanted),
        ),
        Demand(groups=()),
    )
    view = HostView(
        ComputeHost("h", "h", "p", "s", cells_source=INVENTORY_FILE),
        HostFacts("h", "h", cells),
    )
    found = judge(ELSEWHERE, request, view, settings_for(ELSEWHERE))
    return const.NOVA_NUMA_TOPOLOGY in [reason.code for reason in found.numa]


class CellsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.Timeout(LIMIT_S, gentle=True))

    def test_eight_cells_on_sixteen(self):
        # Seven fit, on whichever cells: only every order shows that one never does.
        self.assertTrue(refused([(0, 2)] * 8, [(0, 2)] * 7 + [(0, 1)] * 9))
        self.assertFalse(refused([(0, 2)] * 8, [(0, 1)] * 8 + [(0, 2)] * 8))
        # The first takes what the last needs, and gives it back.
        wanted = [(0, size) for size in range(1, 9)]
        self.assertFalse(refused(wanted, [(0, size) for size in range(8, 0, -1)]))
        self.assertTrue(refused(wanted, [(0, 7 - n // 2) for n in range(16)]))

    @given(st.lists(SIZES, min_size=1, max_size=4), st.lists(SIZES, max_size=5))
    def test_as_trying_every_order(self, wanted, offered):
        expected = not any(
            all(v <= shared and p <= own for (v, p), (shared, own) in pairs)
            for pairs in (
                tuple(zip(wanted, chosen, strict=True))
                for chosen in itertools.permutations(offered, len(wanted))
            )
        )
        self.assertEqual(expected, refused(wanted, offered))
