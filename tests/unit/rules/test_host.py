# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools
from hypothesis import given

from nova_perfvm import constants as const
from nova_perfvm import rules
from nova_perfvm.facts import AskedResource, RequestCell
from nova_perfvm.rules import slots
from nova_perfvm.rules.host import room
from tests.unit.rules import hosts
from tests.unit.rules.hosts import (
    POLICY,
    general_request,
    host,
    hp_request,
    pinned_request,
)


class RulesCase(testtools.TestCase):
    def check(self, expected, request, observed, policy=POLICY):
        """Assert the verdict: a reason code, or None for "may come here"."""
        reasons = rules.check_host(policy, request, observed)
        self.assertEqual(
            [] if expected is None else [expected], [r.code for r in reasons]
        )
        for reason in reasons:
            self.assertIn(reason.code, rules.REASON_CODES)
            self.assertTrue(rules.describe(reason))


class UnclaimedTest(RulesCase):
    def test_what_nova_claims_nothing_for_goes_to_no_host_of_the_policy(self):
        labelled = hosts.policy(managed_hosts="labelled")
        elastic = host(isolating=frozenset({f"{const.TRAIT_ELASTIC}_2"}))
        units = (AskedResource("_a", const.RC_UNIT, 1),)
        refused = "request.not_a_rebuild"
        for expected, request, observed, policy in (
            (refused, hp_request(), host(), POLICY),
            (refused, general_request(), host(), POLICY),
            (refused, pinned_request(4), host(), POLICY),
            (None, general_request(), host(), labelled),
            (refused, general_request(), host(labels=frozenset({"general"})), labelled),
            (refused, general_request(resources=units), elastic, labelled),
            (refused, general_request(resources=units), elastic, POLICY),
        ):
            unclaimed = request._replace(claimed=False)
            self.check(expected, unclaimed, observed, policy)


class RoomTest(testtools.TestCase):
    """Cells with CPUs enough: who is on them, and their memory."""

    def test_which_cells_have_room(self):
        both, second, first = [0, 1], [1], [0]
        for exclusive, facts, expected in (
            ("cell", {"pinned": range(20)}, both),
            ("cell", {"pinned": range(4)}, second),
            # The host is judged as a whole, or the company does not matter.
            ("host", {"pinned": range(4)}, both),
            ("none", {"pinned": range(4)}, both),
            ("cell", {"mode": range(60)}, first),
            ("none", {"mode": range(60)}, both),
            ("cell", {"memory_gb": 128}, both),
            ("cell", {"memory_gb": 127}, []),
        ):
            (vm_class, _) = hosts.policy(exclusive=exclusive).classes
            observed = host("2x40", **facts)
            counts = [slots.cell_cpus(vm_class, cell) for cell in observed.cells]
            found = room.cells_with_room(vm_class, hp_request(), observed, counts)
            self.assertEqual(expected, [cell.id for cell in found], (exclusive, facts))


class HighPerformanceTest(RulesCase):
    """A high-performance VM needs a free slot, and the host for its class."""

    def test_hosts(self):
        one = {"pinned": range(20), "num_instances": 1}
        for expected, observed in (
            (None, host("2x20")),
            (None, host("2x20x2")),
            (None, host("2x22")),
            ("host.numa_cell_too_small", host("4x10")),
            ("host.numa_cell_too_small", host("8x15")),
            ("host.numa_cell_too_small", host("2x6")),
            (None, host(**one)),
            (
                "host.no_free_slot",
                host(pinned=range(40), num_instances=2, vcpus_used=40),
            ),
            ("host.no_dedicated_cpus", host(mode="shared")),
            ("host.no_numa_topology", host()._replace(cells=())),
            # Small pinned VMs that look like a large one.
            (
                "host.max_per_host",
                host(pinned=range(20), num_instances=5, vcpus_used=20),
            ),
            # vcpus_used starts at reserved_host_cpus where no cpu set is configured.
            (None, host(mode="open", vcpus_used=4)),
            (None, host(mode="open", vcpus_used=24, **one)),
            # VMs that move in are pinned before they are counted.
            (None, host(mode="open", vcpus_used=20, pinned=range(20))),
            # Five pinned VMs of 4 vCPUs own all vCPUs in use: no VM is unpinned.
            (
                "host.max_per_host",
                host(mode="open", vcpus_used=20, pinned=range(20), num_instances=5),
            ),
        ):
            self.check(expected, hp_request(), observed)

    def test_what_an_exclusive_class_alone_minds(self):
        for code, observed in (
            ("host.max_per_host", host("4x20", pinned=range(20), num_instances=2)),
            (
                "host.foreign_pins",
                host(pinned=range(4), num_instances=1, vcpus_used=4),
            ),
            ("host.class_conflict", host(mode="open", num_instances=1, vcpus_used=2)),
        ):
            self.check(code, hp_request(), observed)
            self.check(None, hp_request(), observed, hosts.policy(exclusive="none"))
        beside = host(mode="open", pinned=range(20), num_instances=2, vcpus_used=22)
        self.check("host.class_conflict", hp_request(), beside)
        foreign = host(pinned=range(4), num_instances=1, vcpus_used=4)
        cell = hosts.policy(exclusive="cell")
        self.check(None, hp_request(), foreign, cell)
        self.check("host.class_conflict", hp_request(), beside, cell)

    def test_cap(self):
        # VMs that move in are pinned before they are counted.
        for pinned, counted in (
            (range(40), 2),
            ((*range(20), *range(40, 60)), 2),
            (range(40), 0),
        ):
            busy = host("4x20", pinned=pinned, num_instances=counted, vcpus_used=40)
            self.check("host.max_per_host", hp_request(), busy)
            self.check(None, hp_request(), busy, hosts.policy(max_per_host=3))
            self.check(None, hp_request(), busy, hosts.policy(max_per_host=None))

    def test_memory(self):
        self.check("host.numa_cell_memory_too_small", hp_request(), host(memory_gb=100))
        used = host()
        used = used._replace(
            cells=[c._replace(memory_usage_mb=200 * 1024) for c in used.cells]
        )
        self.check("host.no_free_memory", hp_request(), used)

    def test_memory_beside_too_few_cpus(self):
        """A node with enough memory that has no CPUs for the VM."""
        small, large = host(memory_gb=100).cells
        few = frozenset(sorted(large.pcpuset)[:4])
        large = large._replace(pcpuset=few, memory_mb=1000000)
        observed = host()._replace(cells=(small, large))
        (reason,) = rules.decide(POLICY, hp_request(), observed).reasons
        self.assertEqual(
            "MiB per NUMA node: 51200, 1000000; need 65536 on a node with enough pCPUs "
            "(in pages of the requested size)",
            rules.describe(reason),
        )

    def test_free_cpus_and_free_memory_must_be_on_one_cell(self):
        torn = host(pinned=range(20), num_instances=1)
        first, second = torn.cells
        torn = torn._replace(cells=[first, second._replace(memory_usage_mb=200 * 1024)])
        self.check("host.no_free_memory", hp_request(), torn)

    def test_vms_that_the_hosts_figures_leave_out(self):
        policy = dataclasses.replace(POLICY, placement="none")
        shares = dataclasses.replace(hosts.policy(exclusive="none"), placement="none")
        cell = dataclasses.replace(hosts.policy(exclusive="cell"), placement="none")
        left = host(mode="open", vcpus_used=22, pinned=range(20))
        known = left._replace(unpinned=1)
        for exclusive in (policy, cell):
            self.check(None, hp_request(), left, exclusive)
            self.assertEqual(1, rules.vms_by_pins(exclusive, hp_request(), left))
            self.check("host.class_conflict", hp_request(), known, exclusive)
            (reason,) = rules.check_host(exclusive, hp_request(), known)
            self.assertIn("counting VMs in motion", rules.describe(reason))
        # Elsewhere nobody has to look: Placement keeps them apart, or CPUs do.
        for request, at, other in (
            (general_request(), left, policy),
            (hp_request(), host(), policy),
            (hp_request(), left, hosts.policy()),
            (hp_request(), left, shares),
        ):
            self.assertIsNone(rules.vms_by_pins(other, request, at))


class OthersTest(RulesCase):
    """VMs of other classes than the pinned one, or of none."""

    def test_mixed_hosts(self):
        """Node 0 dedicated, node 1 shared: usable under exclusive: cell only."""
        cell, free = (hosts.policy(exclusive=value) for value in ("cell", "none"))
        mixed = {"mode": range(20)}
        split = host("2x44", mode=(*range(22), *range(44, 66)))
        busy = host(**mixed, pinned=range(20), num_instances=1)
        for expected, request, observed, policy in (
            ("host.mode_mixed", hp_request(), host(**mixed), POLICY),
            (None, hp_request(), host(**mixed), cell),
            (None, hp_request(), host(**mixed, num_instances=8, vcpus_used=16), cell),
            ("host.class_conflict", hp_request(), split, cell),
            (None, hp_request(), split, free),
            (None, general_request(), busy, cell),
            ("host.class_conflict", general_request(), busy, POLICY),
        ):
            self.check(expected, request, observed, policy)

    def test_general_vms(self):
        busy = host(mode="open", pinned=range(20), num_instances=1, vcpus_used=20)
        for expected, observed in (
            (None, host(mode="open")),
            (None, host(mode="shared", num_instances=30, vcpus_used=90)),
            ("host.class_conflict", busy),
            # Beside pinned VMs that no class owns.
            (
                None,
                host(mode="open", pinned=range(4), num_instances=1, vcpus_used=4),
            ),
            ("host.no_shared_cpus", host()),
            (None, host()._replace(cells=())),
        ):
            self.check(expected, general_request(), observed)
        self.check(None, general_request(), busy, hosts.policy(exclusive="none"))
        tolerant = dataclasses.replace(hosts.HP, name="tolerant", exclusive="none")
        classes = (tolerant, *POLICY.classes)
        several = dataclasses.replace(POLICY, classes=classes)
        self.check("host.class_conflict", general_request(), busy, several)
        # No high-performance VM is on a host that has another label only.
        for labels, expected in (
            ({"general"}, None),
            ({"general", "high-performance"}, "host.class_conflict"),
        ):
            labelled = busy._replace(labels=frozenset(labels))
            self.check(expected, general_request(), labelled)

    def test_pinned_vms_of_no_class(self):
        """They strand slots, and live on where there are none."""
        for expected, request, observed in (
            ("host.classless_pinned", pinned_request(), host()),
            ("host.classless_pinned", pinned_request(20), host(mode="open")),
            (None, pinned_request(), host("4x10")),
            (None, pinned_request(), host(memory_gb=64)),
        ):
            self.check(expected, request, observed)


class LabelsTest(RulesCase):
    """Aggregate metadata perfvm:class reserves hosts."""

    def test_each(self):
        hp, general, pinned = hp_request(), general_request(), pinned_request()
        only = hosts.policy(managed_hosts="labelled")
        other = dataclasses.replace(hosts.HP, name="other", vcpus=10, flavors=None)
        two = dataclasses.replace(only, classes=(*POLICY.classes, other))
        mine, both = ("high-performance",), ("high-performance", "general")
        reserved, unknown = "host.class_reserved", "host.label_unknown"
        for expected, request, labels, policy in (
            (None, hp, mine, POLICY),
            (reserved, general, mine, POLICY),
            (reserved, pinned, mine, POLICY),
            (reserved, hp, ("general",), POLICY),
            (None, hp, both, POLICY),
            (None, general, both, POLICY),
            *((unknown, of, ("high-perf",), POLICY) for of in (hp, general, pinned)),
            ("host.not_managed", hp, (), only),
            # Nothing changes for what runs there already.
            (None, pinned, (), only),
            (None, hp, mine, only),
            (reserved, pinned, mine, only),
            # Two pinned classes on a host cannot be told apart.
            ("host.label_ambiguous", hp, ("high-performance", "other"), two),
            (None, hp, mine, two),
        ):
            observed = host(mode="open", labels=frozenset(labels))
            self.check(expected, request, observed, policy)
        busy = host(mode="open", pinned=range(20), num_instances=1)
        self.check(None, general, busy, only)


class TwoNodesTest(RulesCase):
    """A class whose VMs are split over two NUMA nodes."""

    def setUp(self):
        super().setUp()
        self.policy = hosts.policy(numa_nodes=2)
        self.request = hp_request(cells=(RequestCell(0, 10, 32768),) * 2)

    def test_needs_both(self):
        self.check(None, self.request, host(), self.policy)
        self.check("host.numa_cell_too_small", self.request, host("1x40"), self.policy)
        half = host(pinned=range(20), num_instances=1)
        self.check("host.no_free_slot", self.request, half, self.policy)

    def test_the_larger_of_unequal_nodes_has_to_fit(self):
        """Whichever of the host's NUMA nodes Nova gives to it."""
        small, large = RequestCell(0, 10, 16384), RequestCell(1, 10, 49152)
        for cells in ((small, large), (large, small)):
            request = hp_request(cells=cells)
            for memory_gb, expected in (
                (96, None),
                (80, "host.numa_cell_memory_too_small"),
            ):
                self.check(expected, request, host(memory_gb=memory_gb), self.policy)


class AnyHostTest(testtools.TestCase):
    """Whatever the topology."""

    @given(hosts.requests, hosts.hosts())
    def test_every_reason_has_a_known_code_and_words(self, request, observed):
        for reason in rules.decide(POLICY, request, observed).reasons:
            self.assertIn(reason.code, rules.REASON_CODES)
            self.assertTrue(rules.describe(reason))
        for line in rules.describe_cells(POLICY, request, observed):
            self.assertIn("pCPUs free", line)

    @given(hosts.hosts())
    def test_pins_never_exceed_a_cell(self, observed):
        """Filling a host until the rules refuse keeps each cell within its CPUs."""
        policy = hosts.policy(max_per_host=None)
        request = hp_request()
        placed = 0
        while rules.decide(policy, request, observed).allowed:
            cells = list(observed.cells)
            index = next(
                i
                for i, cell in enumerate(cells)
                if len(cell.pcpuset - cell.pinned_cpus) >= 20
                and cell.memory_mb - cell.memory_usage_mb >= 65536
            )
            cell = cells[index]
            mine = frozenset(sorted(cell.pcpuset - cell.pinned_cpus)[:20])
            cells[index] = cell._replace(
                pinned_cpus=cell.pinned_cpus | mine,
                memory_usage_mb=cell.memory_usage_mb + 65536,
            )
            observed = observed._replace(
                cells=cells,
                num_instances=observed.num_instances + 1,
                vcpus_used=observed.vcpus_used + 20,
            )
            placed += 1
        for cell in observed.cells:
            self.assertLessEqual(cell.pinned_cpus, cell.pcpuset)
            self.assertLessEqual(cell.memory_usage_mb, max(cell.memory_mb, 0))
        self.assertLessEqual(
            placed, sum(len(cell.pcpuset) // 20 for cell in observed.cells)
        )

    @given(hosts.hosts())
    def test_the_order_of_cells_does_not_matter(self, observed):
        backwards = observed._replace(cells=list(reversed(observed.cells)))
        self.assertEqual(
            rules.decide(POLICY, hp_request(), observed).allowed,
            rules.decide(POLICY, hp_request(), backwards).allowed,
        )


class FormerSizesTest(RulesCase):
    """A class of 18 vCPUs some of whose VMs have 20 still."""

    POLICY = hosts.policy(vcpus=18, former_vcpus=(20,))
    NEW = hp_request(vcpus=18, cells=(RequestCell(0, 18, 65536),))
    OLD = hp_request(running_vcpus=20)

    def test_each(self):
        both = {"vcpus": 18, "former_vcpus": (20,)}
        three = hosts.policy(**both, max_per_host=3)
        free = hosts.policy(**both, exclusive="none")
        one = {"pinned": range(20), "num_instances": 1}
        old = host(**one, vcpus_used=20)
        busy = host("4x20", pinned=(*range(20), *range(40, 58)), num_instances=2)
        half = host(pinned=(*range(2), *range(20, 40)))
        beside = host(mode="open", pinned=range(20), num_instances=2, vcpus_used=22)
        for expected, request, observed, policy in (
            (None, self.NEW, old, self.POLICY),
            (None, self.OLD, old, self.POLICY),
            ("host.foreign_pins", self.NEW, old, hosts.policy(vcpus=18)),
            # One VM is one.
            ("host.max_per_host", self.NEW, busy, self.POLICY),
            ("host.max_per_host", self.OLD, busy, self.POLICY),
            (None, self.NEW, busy, three),
            (None, self.OLD, busy, three),
            # It needs its own size.
            (None, self.NEW, host("2x19"), self.POLICY),
            ("host.numa_cell_too_small", self.OLD, host("2x19"), self.POLICY),
            ("host.no_free_slot", self.OLD, half, free),
            # General VMs beside it.
            (None, self.NEW, host(mode="open", **one, vcpus_used=20), three),
            ("host.class_conflict", self.NEW, beside, three),
        ):
            self.check(expected, request, observed, policy)

    def test_a_large_vm_that_looks_like_two(self):
        sizes = {"vcpus": 10, "former_vcpus": (20,)}
        request = hp_request(vcpus=10, cells=(RequestCell(0, 10, 65536),))
        busy = host(pinned=range(20), num_instances=1, vcpus_used=20)
        # Nobody else may be on the host, so the number of VMs tells.
        self.check(None, request, busy, hosts.policy(**sizes))
        # Elsewhere nothing tells, and they may be two.
        shares = hosts.policy(**sizes, exclusive="none")
        self.check("host.max_per_host", request, busy, shares)

    def test_strangers_are_told_by_all_sizes(self):
        strange = host(pinned=range(19), num_instances=1)
        for request in (self.NEW, self.OLD):
            (reason,) = rules.check_host(self.POLICY, request, strange)
            self.assertIn("no sum of 18 and 20", rules.describe(reason))

    def test_general_vms_keep_off_the_smallest_size(self):
        grown = hosts.policy(vcpus=20, former_vcpus=(16,))
        small = host(mode="open", pinned=range(16), num_instances=1)
        self.check("host.class_conflict", general_request(), small, grown)
        self.check(None, general_request(), small)
