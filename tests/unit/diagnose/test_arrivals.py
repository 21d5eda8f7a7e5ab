# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm.diagnose import explain
from nova_perfvm.diagnose.arrivals import shares
from nova_perfvm.facts.host_view import views_of
from tests.unit.facts.snapshot.clouds import HP, Cloud
from tests.unit.rules import hosts


class SharesTest(testtools.TestCase):
    def test_the_cpu_of_isolated_emulator_threads_is_on_the_first_node(self):
        isolated = {"numa_nodes": 2, "emulator_threads": "isolate"}
        for name, removed in (("of a class", None), ("of no class", const.CLASS_KEY)):
            policy = hosts.policy(**isolated)
            cloud = Cloud(policy)
            cloud.add_host("h1", shape="2x40")
            specs = dict(cloud.flavors[HP].extra_specs)
            specs.pop(removed, None)
            cloud.change_flavor(HP, extra_specs=specs)
            snapshot = cloud.snapshot()
            request, _ = explain.request_of(snapshot, flavor=HP)
            (view,) = views_of(snapshot)
            found = shares(policy, request, view)
            self.assertEqual([11, 10], [len(share.cpus) for share in found], name)

    def test_threads_beside_isolated_cpus(self):
        """On hosts without cpu sets; Nova leaves them idle."""
        policy = hosts.policy()
        for cores, expected in (
            ([{n, n + 8} for n in range(8)], (0, 1, 2, 8, 9, 10)),
            ([{n, n + 1} for n in range(0, 16, 2)], (0, 2, 4, 1, 3, 5)),
        ):
            cloud = Cloud(policy)
            cloud.add_host("h1", "shared", shape="1x8x2")
            specs = {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "isolate"}
            cloud.change_flavor(HP, vcpus=3, extra_specs=specs)
            snapshot = cloud.snapshot()
            request, _ = explain.request_of(snapshot, flavor=HP)
            (view,) = views_of(snapshot)
            (cell,) = view.facts.cells
            cell = cell._replace(siblings=tuple(map(frozenset, cores)))
            view = dataclasses.replace(view, facts=view.facts._replace(cells=[cell]))
            (share,) = shares(policy, request, view)
            self.assertEqual(expected, share.cpus)
