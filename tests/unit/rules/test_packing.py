# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools
from hypothesis import given

from nova_perfvm.policy import VMClass
from nova_perfvm.rules import packing
from tests.unit.rules import hosts


def open_host(shape="2x20", **facts):
    """Return a host each of whose CPUs may be pinned or shared."""
    return hosts.host(shape, "open", **facts)


def with_vms(high_performance=0, general=0, mode="open", shape="2x20", **facts):
    """Return a host with so many VMs of 20 pinned, and of 2 unpinned vCPUs."""
    return hosts.host(
        shape,
        mode,
        pinned=range(20 * high_performance),
        num_instances=high_performance + general,
        vcpus_used=20 * high_performance + 2 * general,
        **facts,
    )


class PackingCase(testtools.TestCase):
    def points(self, request, host, **policy):
        return packing.score(hosts.policy(**policy), request, host)

    def check_order(self, request, best_first, **policy):
        """Each host is worth strictly more than the next."""
        points = [self.points(request, host, **policy) for host in best_first]
        self.assertEqual(sorted(set(points), reverse=True), points)


class GeneralVMTest(PackingCase):
    def test_order(self):
        self.check_order(
            hosts.general_request(),
            [
                hosts.host(mode="shared"),
                with_vms(general=9),
                with_vms(general=8),
                with_vms(general=1),
                open_host("1x20"),
                open_host("2x20"),
                with_vms(high_performance=1),
            ],
        )

    def test_what_does_not_matter(self):
        request = hosts.general_request()
        for host, keys in (
            (hosts.host(mode="shared"), {}),
            (hosts.host(mode=range(20)), {}),
            (open_host("4x10"), {}),
            # 20 CPUs a cell, but no 20 cores.
            (open_host("4x10x2"), {}),
            (open_host(memory_gb=100), {}),
            (open_host(labels=frozenset({"general"})), {}),
            (hosts.host()._replace(cells=()), {}),
            # No slot is lost to a class that takes any company.
            (open_host(), {"exclusive": "none"}),
            (open_host(), {"managed_hosts": "labelled"}),
        ):
            self.assertEqual(packing.NEUTRAL, self.points(request, host, **keys), host)
        for host in (open_host(), hosts.host(), with_vms(1), with_vms(0, 1)):
            self.assertEqual(packing.NEUTRAL, self.points(hosts.pinned_request(), host))

    def test_what_does(self):
        request, fixed = hosts.general_request(), self.points
        cell = [with_vms(general=1), open_host()]
        self.check_order(request, cell, exclusive="cell")
        # Reserved CPUs are no company.
        reserved = fixed(request, open_host(vcpus_used=4))
        self.assertEqual(fixed(request, open_host()), reserved)
        self.assertGreater(0, fixed(request, open_host("4x10x2"), smt="threads"))
        for count in (40, 41, 500):
            most = packing.BROKEN + packing.MOST_COMPANY
            self.assertEqual(most, fixed(request, with_vms(general=count)))

    def test_a_host_with_pins_of_nobody_has_lost_its_slots(self):
        stray = open_host(pinned=range(4), num_instances=1, vcpus_used=4)
        self.check_order(
            hosts.general_request(), [with_vms(general=1), stray, open_host()]
        )

    def test_pins_of_nobody_cost_no_slot_of_a_class_that_owns_only_cells(self):
        stray = open_host(pinned=range(4), num_instances=1, vcpus_used=4)
        request = hosts.general_request()
        self.assertEqual(
            self.points(request, open_host(), exclusive="cell"),
            self.points(request, stray, exclusive="cell"),
        )

    def test_the_dearest_of_several_classes_counts(self):
        small = VMClass(
            name="small",
            vcpus=5,
            cpu_policy="dedicated",
            exclusive="cell",
            numa_nodes=1,
        )
        both = dataclasses.replace(hosts.POLICY, classes=(*hosts.POLICY.classes, small))
        request, host = hosts.general_request(), open_host()
        self.assertEqual(packing.UNTOUCHED - 8, packing.score(both, request, host))
        self.assertEqual(packing.UNTOUCHED - 2, self.points(request, host))

    def test_a_class_that_takes_company_hides_no_other(self):
        tolerant = dataclasses.replace(hosts.HP, name="tolerant", exclusive="none")
        classes = (tolerant, *hosts.POLICY.classes)
        policy = dataclasses.replace(hosts.POLICY, classes=classes)
        found = packing.score(policy, hosts.general_request(), open_host())
        self.assertEqual(packing.UNTOUCHED - 2, found)


class HighPerformanceVMTest(PackingCase):
    def test_order(self):
        self.check_order(
            hosts.hp_request(),
            [
                with_vms(high_performance=1, mode="dedicated"),
                with_vms(high_performance=1),
                hosts.host("1x20"),
                hosts.host("2x20"),
                open_host("1x20"),
                open_host("2x20"),
                with_vms(high_performance=2),
            ],
        )

    def test_labelled_hosts_among_others(self):
        both = frozenset({"high-performance", "general"})
        labelled = [with_vms(general=1, labels=both), open_host(labels=both)]
        self.check_order(
            hosts.general_request(), [open_host(), *labelled], managed_hosts="labelled"
        )

    def test_fewest_free_slots_first(self):
        self.check_order(
            hosts.hp_request(),
            [with_vms(n, mode="dedicated", shape="4x20") for n in (3, 2, 1, 0, 4)],
            max_per_host=4,
        )

    def test_the_cap_ends_a_host(self):
        host = with_vms(2, mode="dedicated", shape="4x20")
        self.assertEqual(packing.WORST, self.points(hosts.hp_request(), host))

    def test_memory_that_is_left(self):
        host = with_vms(0, mode="dedicated")
        cells = [
            host.cells[0]._replace(memory_usage_mb=host.cells[0].memory_mb),
            host.cells[1],
        ]
        self.check_order(hosts.hp_request(), [host._replace(cells=cells), host])
        # A node whose memory is overcommitted takes no room from the other.
        most = host.cells[0].memory_mb + 4 * 65536
        over = [host.cells[0]._replace(memory_usage_mb=most), host.cells[1]]
        self.assertEqual(
            self.points(hosts.hp_request(), host._replace(cells=cells)),
            self.points(hosts.hp_request(), host._replace(cells=over)),
        )

    def test_pins_of_nobody_close_a_node_to_classes_that_own_nodes(self):
        host = hosts.host("2x44", pinned=range(4))
        for exclusive, free in (("none", 4), ("host", 4), ("cell", 2)):
            found = self.points(
                hosts.hp_request(), host, exclusive=exclusive, max_per_host=None
            )
            expected = packing.OCCUPIED + packing.RESERVED - free
            self.assertEqual(expected, found, exclusive)

    def test_more_slots_than_points(self):
        """A host with any number of slots is better than one without."""
        small = {"vcpus": 2, "max_per_host": None, "flavors": None}
        request = hosts.hp_request(vcpus=2, cells=(hosts.RequestCell(0, 2, 1024),))
        for shape in ("1x42", "4x40"):
            for asked, host, expected in (
                (request, hosts.host(shape), packing.EMPTY + packing.RESERVED),
                (hosts.general_request(), open_host(shape), packing.UNTOUCHED),
            ):
                found = self.points(asked, host, **small)
                self.assertEqual(expected - packing.MOST_SLOTS, found)

    def test_hosts_that_are_as_good(self):
        for one, other, keys in (
            # General VMs may not come there.
            (hosts.host(), open_host(labels=frozenset({"high-performance"})), {}),
            # The first cell has shared CPUs as well: nothing goes there.
            (
                hosts.host("1x40"),
                hosts.host("2x40", mode=range(20, 80)),
                {"exclusive": "cell"},
            ),
        ):
            points = {self.points(hosts.hp_request(), h, **keys) for h in (one, other)}
            self.assertEqual(1, len(points))

    def test_a_vm_of_two_cells(self):
        request = hosts.hp_request(cells=(hosts.RequestCell(0, 10, 32768),) * 2)
        self.check_order(
            request,
            [hosts.host("2x10"), hosts.host("2x20"), hosts.host("1x40")],
            numa_nodes=2,
        )


class ScaleTest(PackingCase):
    @given(hosts.requests, hosts.hosts())
    def test_whole_points_within_the_scale(self, request, host):
        for exclusive in ("host", "cell", "none"):
            points = self.points(request, host, exclusive=exclusive)
            self.assertIsInstance(points, int)
            self.assertLessEqual(abs(points), packing.FULL_SCALE)
