# SPDX-License-Identifier: Apache-2.0
"""Devices that Nova's own pools give, and what is left of them, beside ours."""

import collections
import itertools
import random

import testtools
from nova import objects
from nova.pci import stats
from oslo_utils import uuidutils

from nova_perfvm.cloud import nova_database
from nova_perfvm.diagnose import devices
from nova_perfvm.facts import HostFacts
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import ComputeHost, HostCell
from nova_perfvm.facts.snapshot.pci import POLICIES

CASES = 700
IDS = (("10de", "1db4"), ("8086", "154d"))
TYPES = ("type-PCI", "type-VF", "type-PF", "vdpa")
# What a pool has, or an alias or a port asks for, and how often.
TAGS = {
    "dev_type": (0.6, TYPES),
    "live_migratable": (0.2, ("true", "false")),
    "physical_network": (0.2, ("a", "B", "b")),
    "remote_managed": (0.2, ("true", "false", "False")),
}


class AgreementTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        objects.register_all()
        self.random = random.Random(1)

    def some(self):
        """Return IDs with either case, and some tags."""
        vendor, product = self.random.choice(IDS)
        found = {"vendor_id": vendor, "product_id": product}
        for name, (share, values) in TAGS.items():
            if self.random.random() < share:
                found[name] = self.random.choice(values)
        return found

    def pools(self, nodes):
        made = (
            {"dev_type": "type-PCI", "address": f"0000:8{number}:00.0", **self.some()}
            | {"numa_node": self.random.choice((*nodes, *nodes, None))}
            | {"count": self.random.randint(1, 3)}
            for number in range(self.random.randint(1, 8))
        )
        listed = [objects.PciDevicePool.from_dict(pool) for pool in made]
        return objects.PciDevicePoolList(objects=listed)

    def request(self):
        specs = [self.some() for _ in range(self.random.choice((1, 1, 2)))]
        if self.random.random() < 0.6:
            # As aliases do, which say no more.
            vendor, product = self.random.choice(IDS)
            specs = [{"vendor_id": vendor.upper(), "product_id": product}]
        return objects.InstancePCIRequest(
            count=self.random.choice((0, 1, 1, 1, 2, 3)),
            spec=specs,
            alias_name=self.random.choice(("a", None)),
            numa_policy=self.random.choice((*POLICIES, None)),
            request_id=uuidutils.generate_uuid(),
        )

    def test_random_pools(self):
        counts = collections.Counter()
        for _ in range(CASES):
            nodes = range(self.random.choice((1, 2, 4, 4)))
            sockets = [
                self.random.choice((node // 2, node // 2, node)) for node in nodes
            ]
            if self.random.random() < 0.3:
                sockets[0] = None
            pools = self.pools(nodes)
            topology = objects.NUMATopology(
                cells=[objects.NUMACell(id=n, socket=sockets[n]) for n in nodes]
            )
            view = view_of(sockets, pools)
            requests = [self.request() for _ in range(self.random.choice((1, 1, 1, 2)))]
            asked = [nova_database._request(request) for request in requests]
            for many in range(len(nodes) + 1):
                for chosen in itertools.combinations(nodes, many):
                    theirs = stats.PciDeviceStats(topology, pools)
                    cells = [objects.InstanceNUMACell(id=node) for node in chosen]
                    taken = theirs.support_requests(requests, {}, cells or None)
                    ours = devices.given(asked, view, chosen)
                    where = (asked, chosen, sockets, view.compute.pci_pools)
                    self.assertEqual(taken, ours is not None, where)
                    for request in asked:
                        counts[request.policy, taken] += 1
                    if taken:
                        theirs.apply_requests(requests, {}, cells or None)
                        left = {pool["address"]: pool["count"] for pool in theirs.pools}
                        mine = {pool.tags["address"]: pool.count for pool in ours.pools}
                        self.assertEqual(left, mine, where)
        for policy, taken in itertools.product(POLICIES, (True, False)):
            self.assertGreater(counts[policy, taken], CASES // 10, counts)


def view_of(sockets, pools):
    """Return a host of which only these are looked at."""
    none = frozenset()
    cells = tuple(
        HostCell(node, none, none, 1, socket=socket)
        for node, socket in enumerate(sockets)
    )
    node = objects.ComputeNode(pci_device_pools=pools)
    free = nova_database._pools(node)
    host = ComputeHost("h", "h", "p", "s", cells=cells, pci_pools=free)
    return HostView(compute=host, facts=HostFacts("h", "h", ()))
