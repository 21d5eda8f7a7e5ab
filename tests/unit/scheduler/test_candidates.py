# SPDX-License-Identifier: Apache-2.0

import gc
import itertools
import weakref

import testtools
from hypothesis import given
from hypothesis import strategies as st
from oslo_utils import uuidutils

from nova_perfvm.scheduler import candidates
from tests.unit.scheduler import states
from tests.unit.scheduler.test_numa_filter import primitive

UNITS = {"CUSTOM_PERFVM_UNIT": 1000}


def offer(*children, **others):
    """Return a candidate as Placement gives it.

    :param children: providers that it takes units of
    :param others: what it takes of others, such as a nested provider of a NIC
    """
    taken = {"root": {"VCPU": 20}} | dict.fromkeys(children, UNITS) | others
    return {
        "allocations": {name: {"resources": some} for name, some in taken.items()},
        "mappings": {"": ["root"], "_PERFVM": list(children)},
    }


def children(offers):
    """Return the children of candidates that take one each, in their order."""
    return [child for found in offers for child in candidates.child_of(found)]


class ByChildTest(testtools.TestCase):
    def firsts(self, offers, starts):
        return [children(candidates.by_child(offers, n)[0])[0] for n in starts]

    def test_the_next_number_begins_with_the_next_child(self):
        offers = [offer("b"), offer("a")]
        self.assertEqual(["a", "b", "a", "b"], self.firsts(offers, range(4)))

    def test_another_nested_choice_does_not_matter(self):
        """Each child can be had with each of two NICs, of which one sorts first."""
        offers = [
            offer(child, **{nic: {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}})
            for nic, child in itertools.product(("0-nic", "z-nic"), "ba")
        ]
        self.assertEqual(["a", "b", "a", "b"], self.firsts(offers, range(4)))
        for group in candidates.by_child(offers, 1):
            # Placement, or a filter before, had a reason for their order.
            self.assertEqual(
                ["0-nic", "z-nic"],
                [
                    nic
                    for found in group
                    for nic in found["allocations"]
                    if "nic" in nic
                ],
            )

    def test_nothing_to_choose(self):
        both = [offer("a", "b", nic1={}), offer("b", "a", nic2={})]
        for offers, expected in (([], []), ([offer("a")],) * 2, (both, both)):
            found = candidates.by_child(offers, 7)
            self.assertEqual([expected] if expected else [], found)

    @given(st.permutations("abcde"), st.integers(0, 10**9))
    def test_no_candidate_is_lost_and_placements_order_does_not_matter(
        self, order, start
    ):
        found = candidates.by_child([offer(child) for child in order], start)
        again = candidates.by_child([offer(child) for child in "abcde"], start)
        self.assertEqual(again, found)
        self.assertEqual(set("abcde"), {children(group)[0] for group in found})


class AttemptsTest(testtools.TestCase):
    """As nova-scheduler goes about it: filter, claim the first, filter again."""

    def spec(self, number=0, **changes):
        spec = states.request_spec(**changes)
        spec.id = number
        return spec

    def hosts(self, *names, slots=2):
        # Nova counts what a VM takes in pages.
        pools = [(4, 64 * 1024 * 1024, 0, 0)]
        hosts = [
            states.host_state(name, states.numa_topology(mempages=pools))
            for name in names
        ]
        for host in hosts:
            host.allocation_candidates = [
                offer(f"{host.host}_{child}") for child in "abcdefgh"[:slots]
            ]
        return hosts

    def tried(self, attempts):
        """Return the children that Nova claims until a claim succeeds."""
        return [
            child
            for attempt in attempts
            for child in children(attempt.allocation_candidates[:1])
        ]

    def pins(self, host):
        return sum(len(cell.pinned_cpus) for cell in host.numa_topology.cells)

    def test_the_kept_host_is_as_nova_itself_would_leave_it(self):
        """By its ``updated`` Nova reads the host anew only from a later report on."""
        spec = self.spec()
        (ours,) = self.hosts("h")
        (theirs,) = self.hosts("h")
        for host in (ours, theirs):
            host.free_ram_mb = host.free_disk_mb = 10**6
        attempt, *_ = candidates.attempts([ours], spec)
        second, *_ = candidates.attempts(candidates.attempts([ours], spec), spec)
        self.assertIs(ours, second.origin)
        attempt.consume_from_request(spec)
        theirs.consume_from_request(self.spec())

        def figures(host):
            found = primitive(host.numa_topology), host.free_ram_mb, host.vcpus_used
            return *found, host.free_disk_mb, host.num_instances, host.num_io_ops

        self.assertEqual(20, self.pins(ours))
        self.assertEqual(figures(theirs), figures(ours))
        self.assertEqual(figures(theirs), figures(attempt))
        self.assertIsNotNone(ours.updated)
        # Other requests' limits are their own.
        self.assertEqual({}, ours.limits)
        # As _ensure_sufficient_hosts does when the request fails.
        attempt.updated = None
        self.assertIsNone(ours.updated)

    def test_every_child_is_tried_neighbours_beginning_apart(self):
        for spec, expected in (
            (self.spec(6), ["h_a", "h_b"]),
            (self.spec(7), ["h_b", "h_a"]),
            (states.request_spec(), ["h_a", "h_b"]),
        ):
            found = candidates.attempts(self.hosts("h"), spec)
            self.assertEqual(expected, self.tried(found))

    def test_many_hosts_are_tried_once_each(self):
        names = [f"h{n}" for n in range(candidates.MANY_HOSTS + 1)]
        found = candidates.attempts(self.hosts(*names), self.spec(1))
        self.assertEqual(names, [attempt.host for attempt in found])
        self.assertEqual({"b"}, {child[-1] for child in self.tried(found)})
        # The filters to come may take candidates away.
        self.assertEqual({2}, {len(a.allocation_candidates) for a in found})

    def test_a_host_is_judged_once_and_after_a_claim_as_it_is_then(self):
        spec = self.spec()
        found = candidates.attempts(self.hosts("h", slots=3), spec)
        found[1].consume_from_request(spec)

        (host,) = candidates.current(found)

        self.assertIs(found[1], host)
        self.assertEqual(20, self.pins(host))
        self.assertEqual(["h_a", "h_c"], children(host.allocation_candidates))

    def test_a_claim_takes_the_child_of_its_first_candidate_alone(self):
        (host,) = self.hosts("h", slots=3)
        attempt = candidates.attempts([host], self.spec())[0]
        attempt.allocation_candidates = [offer("h_a"), offer("h_b")]
        kept = attempt.kept()
        self.assertEqual([False, True, True], [kept(offer(f"h_{c}")) for c in "abc"])

    def test_several_servers_of_one_request_take_a_child_each(self):
        """Four slots on two cells: pins tell less than claims."""
        spec = self.spec(vcpus=10)
        hosts = self.hosts("h", slots=4)
        claimed = []
        for _ in range(4):
            spec.instance_uuid = uuidutils.generate_uuid()
            hosts = candidates.attempts(candidates.current(hosts), spec)
            claimed += self.tried(hosts)[:1]
            hosts[0].consume_from_request(spec)
        self.assertEqual(["h_a", "h_b", "h_c", "h_d"], claimed)
        (host,) = candidates.current(hosts)
        self.assertEqual(40, self.pins(host))
        self.assertEqual([], host.allocation_candidates)

    def test_alternates_are_other_hosts_once_each(self):
        spec = self.spec()
        hosts = self.hosts("h1", "h2", "h3")
        selected = []
        for _ in range(2):
            spec.instance_uuid = uuidutils.generate_uuid()
            hosts = candidates.attempts(candidates.current(hosts), spec)
            hosts[0].consume_from_request(spec)
            selected.append(hosts[0])
        # Nova asks the filters once more, for the last of them, and leaves out the
        # hosts that it has selected.
        hosts = candidates.attempts(candidates.current(hosts), spec)
        self.assertEqual(
            ["h2", "h3"],
            [host.host for host in hosts if host not in selected],
        )

    def test_what_later_filters_do_stays_with_the_attempt(self):
        (original,) = self.hosts("h")
        first, second = candidates.attempts([original], self.spec())
        first.limits["numa_topology"] = object()
        self.assertEqual(({}, {}), (original.limits, second.limits))

    def test_what_later_filters_have_refused(self):
        for refuse, expected in (
            # NUMATopologyFilter leaves the candidates that fit.
            (lambda found: setattr(found[0], "allocation_candidates", []), [1, 2]),
            # Nova drops a host with both of its attempts.
            (lambda found: found.__delitem__(slice(2)), [2]),
        ):
            spec = self.spec()
            every = candidates.attempts(self.hosts("h1", "h2"), spec)
            found = list(every)
            refuse(found)
            every[2].consume_from_request(spec)
            self.assertEqual([every[n] for n in expected], candidates.current(found))

    def test_nothing_of_a_request_is_left_for_the_collector(self):
        """What is garbage when the collector is told to pass by stays for good."""
        gc.disable()
        self.addCleanup(gc.enable)
        found = candidates.attempts(self.hosts("h1", "h2"), self.spec())
        found[0].consume_from_request(self.spec())
        alive = [weakref.ref(attempt) for attempt in found]
        del found
        self.assertEqual([None] * len(alive), [ref() for ref in alive])
