# SPDX-License-Identifier: Apache-2.0

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
