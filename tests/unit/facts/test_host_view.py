# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools

import testtools

from nova_perfvm.facts import PagePool
from nova_perfvm.facts.host_view import view_of
from tests.unit.facts.snapshot.clouds import POLICY, Cloud

UNITS = dataclasses.replace(POLICY, placement="units")


class WithoutTest(testtools.TestCase):
    SERVERS = ("hp1", "hp2", "general1", "general2")

    def view(self, names):
        """Return a host with some of the servers."""
        cloud = Cloud()
        cloud.add_host("h1", "shared")
        for name in names:
            if name.startswith("general"):
                cloud.add_general(name, "h1")
            else:
                node = int(name == "hp2")
                cloud.add_hp(name, "h1", first=20 * node, node=node)
        return view_of(cloud.snapshot(), "h1")

    def test_as_if_servers_had_never_come(self):
        everybody = self.view(self.SERVERS)
        for number in range(len(self.SERVERS) + 1):
            for staying in itertools.combinations(self.SERVERS, number):
                gone = [s for s in everybody.servers if s.name not in staying]
                found, expected = everybody.without(gone), self.view(staying)
                for part in ("facts", "tree", "servers"):
                    self.assertEqual(getattr(expected, part), getattr(found, part))

    def test_pages_of_servers_that_go(self):
        """A server takes pages of its own size on its own NUMA node."""
        cloud = Cloud()
        cloud.add_host("h1")
        cloud.add_hp("hp1", "h1", first=20, node=1)
        view = view_of(cloud.snapshot(), "h1")
        pools = (PagePool(2048, 100_000, 40_000), PagePool(1048576, 50, 5))
        cells = [cell._replace(mempages=pools) for cell in view.facts.cells]
        (server,) = view.servers
        for size_kb, expected in (
            (2048, [[40_000, 5], [40_000 - 32768, 5]]),
            (4, [[40_000, 5], [40_000, 5]]),
        ):
            paged = dataclasses.replace(server, page_size_kb=size_kb)
            before = dataclasses.replace(view, facts=view.facts._replace(cells=cells))
            found = before.without([paged]).facts.cells
            used = [[pool.used for pool in cell.mempages] for cell in found]
            self.assertEqual(expected, used, size_kb)


class IsolatingTest(testtools.TestCase):
    def test_aggregates_of_the_root_provider_isolate(self):
        cloud = Cloud(UNITS)
        cloud.add_elastic("h1")
        for root, child, expected in (
            ({"elastic"}, set(), ["elastic"]),
            (set(), {"elastic"}, []),
        ):
            cloud.change_provider("h1", aggregates=frozenset(root))
            cloud.change_provider("h1_perfvm_a", aggregates=frozenset(child))
            view = view_of(cloud.snapshot(), "h1")
            self.assertEqual(expected, [one.name for one in view.isolating])
            self.assertEqual(bool(expected), view.closed)


class OutsideTest(testtools.TestCase):
    """Child providers that are not below their host's provider."""

    def test_strayed_elsewhere_or_detached(self):
        cloud = Cloud(UNITS)
        cloud.add_elastic("h1")
        cloud.add_host("h2", "shared")
        first, second = (f"h1_perfvm_{letter}" for letter in "ab")
        cloud.change_provider(first, parent=None, root=first)
        cloud.change_provider(second, parent="p-h2", root="p-h2")
        for empty in (False, True):
            if empty:
                cloud.change_provider(first, inventories={}, traits=frozenset())
            view = view_of(cloud.snapshot(), "h1")
            strayed, detached = (
                [child.name for child in found]
                for found in (view.strayed, view.detached)
            )
            self.assertEqual([] if empty else [first], strayed)
            self.assertEqual([first] if empty else [], detached)
            self.assertEqual({second}, {*view.elsewhere})
