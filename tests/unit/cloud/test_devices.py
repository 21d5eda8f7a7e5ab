# SPDX-License-Identifier: Apache-2.0
"""Devices that Nova's own pools give, and what is left of them, beside ours."""

import collections
import itertools
import random
import types
from dataclasses import replace

import testtools
from nova import objects
from nova.pci import stats
from oslo_utils import uuidutils

from nova_perfvm.cloud import nova_database
from nova_perfvm.diagnose import devices
from nova_perfvm.facts import HostFacts
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import (
    ComputeHost,
    HostCell,
    Inventory,
    Provider,
    Snapshot,
    dumps,
    loads,
)
from nova_perfvm.facts.snapshot.pci import POLICIES, PCIPool, PCIRequest, returned

CASES = 700
# Of a port of a tunnelled network, which has no physical network.
PORT = {"physical_network": None, "remote_managed": "False"}
CARD = {"vendor_id": "15b3", "product_id": "1018", "dev_type": "type-VF"}
IDS = (("10de", "1db4"), ("8086", "154d"))
TYPES = ("type-PCI", "type-VF", "type-PF", "vdpa")
# What a pool has, or an alias or a port asks for, and how often.
TAGS = {
    "dev_type": (0.6, TYPES),
    "live_migratable": (0.2, ("true", "false")),
    # None is what Nova asks for a port of a tunnelled network.
    "physical_network": (0.2, ("a", "B", "b", None)),
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


class TunnelledTest(testtools.TestCase):
    def test_only_devices_of_no_physical_network(self):
        objects.register_all()
        request = objects.InstancePCIRequest(count=1, spec=[PORT])
        asked = [nova_database._request(request)]
        for name, tags, expected in (
            ("a network", {"physical_network": "physnet1"}, False),
            ("no tag", {}, True),
            ("none, as [pci]device_spec may say", {"physical_network": None}, True),
        ):
            pool = {"count": 1, "numa_node": 0, "remote_managed": "false"}
            made = objects.PciDevicePool.from_dict(pool | CARD | tags)
            pools = objects.PciDevicePoolList(objects=[made])
            view = view_of([0], pools)
            taken = Snapshot("2026-01-01T00:00:00+00:00", hosts=(view.compute,))
            self.assertEqual(taken, loads(dumps(taken)), name)
            found = devices.given(asked, view)
            topology = objects.NUMATopology(cells=[])
            theirs = stats.PciDeviceStats(topology, pools)
            self.assertEqual(expected, theirs.support_requests([request], {}), name)
            self.assertEqual(expected, found is not None, name)

    def test_the_device_goes_back_to_its_pool(self):
        asked = PCIRequest("of a port", 1, (PORT,), port=True)
        row = types.SimpleNamespace(
            **CARD, extra_info="", numa_node=0, parent_addr="a", address="b"
        )
        held = nova_database._held(row, asked)
        tags = CARD | {"address": "a", "remote_managed": "False"}
        (after,) = returned([PCIPool(2, 0, tags)], [held])
        self.assertEqual(PCIPool(3, 0, tags), after)


class CountedByPlacementTest(testtools.TestCase):
    """Requests together, with [filter_scheduler]pci_in_placement."""

    def test_random_requests(self):
        objects.register_all()
        rng, counts = random.Random(2), collections.Counter()
        for _ in range(CASES):
            pools = [
                {"vendor_id": rng.choice("aab"), "product_id": "p"}
                | {"address": str(number), "numa_node": rng.choice((0, 0, 1, None))}
                | {"count": rng.randint(1, 2), "rp_uuid": f"rp{number}"}
                for number in range(rng.randint(2, 4))
            ]
            requests = [
                objects.InstancePCIRequest(
                    count=rng.choice((1, 1, 2)),
                    spec=[{"vendor_id": rng.choice("aab"), "product_id": "p"}],
                    # A port's devices are not counted.
                    alias_name=rng.choice(("a", "a", "a", None)),
                    numa_policy=rng.choice((*POLICIES, None)),
                    request_id=uuidutils.generate_uuid(),
                )
                for _ in range(rng.randint(1, 3))
            ]
            nodes = rng.choice(((), (0,), (1,), (0, 1)))
            expected = any(
                taken_as_asked(pools, requests, mapping, nodes)
                for mapping in candidates(pools, requests)
            )
            found = devices.given(*asked_of(pools, requests), nodes)
            self.assertEqual(expected, found is not None, (pools, requests, nodes))
            counts[len(requests), expected] += 1
        for number, taken in itertools.product((1, 2, 3), (True, False)):
            self.assertGreater(counts[number, taken], CASES // 20, counts)


def candidates(pools, requests):
    """Yield {request group: [provider]} for each allocation candidate of Placement."""
    groups = [
        (f"{request.request_id}-{number}", request.spec[0]["vendor_id"])
        for request in requests
        if request.alias_name
        for number in range(request.count)
    ]
    of = [[p["rp_uuid"] for p in pools if p["vendor_id"] == kind] for _, kind in groups]
    free = {pool["rp_uuid"]: pool["count"] for pool in pools}
    for chosen in itertools.product(*of):
        used = collections.Counter(chosen)
        if all(used[provider] <= free[provider] for provider in used):
            yield {
                group: [uuid] for (group, _), uuid in zip(groups, chosen, strict=True)
            }


def taken_as_asked(pools, requests, mapping, nodes):
    """Return whether Nova gives all devices of the requests.

    Where near devices are enough, Nova passes candidates with far devices and then
    gives fewer devices than were asked for.
    """
    topology = objects.NUMATopology(
        cells=[objects.NUMACell(id=node, socket=node) for node in (0, 1)]
    )
    listed = [objects.PciDevicePool.from_dict(dict(pool)) for pool in pools]
    theirs = stats.PciDeviceStats(topology, objects.PciDevicePoolList(objects=listed))
    cells = [objects.InstanceNUMACell(id=node) for node in nodes]
    if not theirs.support_requests(requests, mapping, cells or None):
        return False
    before = sum(pool["count"] for pool in theirs.pools)
    theirs.apply_requests(requests, mapping, cells or None)
    left = sum(pool["count"] for pool in theirs.pools)
    return before - left == sum(request.count for request in requests)


def asked_of(pools, requests):
    """Return the requests and the host as the model has them."""
    asked = []
    for request in requests:
        one = nova_database._request(request)
        kind = request.spec[0]["vendor_id"]
        asked.append(replace(one, resource_class=kind if request.alias_name else ""))
    listed = [objects.PciDevicePool.from_dict(dict(pool)) for pool in pools]
    view = view_of([0, 1], objects.PciDevicePoolList(objects=listed))
    inventory = Inventory(2, 2)
    tree = tuple(
        Provider(p["rp_uuid"], p["rp_uuid"], 1, {p["vendor_id"]: inventory})
        for p in pools
    )
    return asked, replace(view, tree=tree)


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
