# SPDX-License-Identifier: Apache-2.0
"""Candidates of ``placement: cells``, on Nova's real objects and its own fitting."""

import copy
import operator
from unittest import mock

from nova import exception, objects
from nova.pci import stats
from nova.scheduler import manager, weights
from nova.virt import hardware
from oslo_utils import uuidutils
from oslo_utils.fixture import uuidsentinel

from nova_perfvm import constants as const
from nova_perfvm.facts.children import child_name, child_uuid
from nova_perfvm.scheduler import instances, numa_filter
from tests.unit.scheduler import random_hosts, states
from tests.unit.scheduler.case import ConfigCase
from tests.unit.scheduler.test_numa_filter import asked, primitive

OTHER = {"resources": {"MEMORY_MB": 1}}


def child(host, node):
    return child_uuid(host.uuid, child_name(host.nodename, f"cell_{node}"))


def candidate(host, *nodes, **mappings):
    """Return what Placement offers of a host: CPUs of these NUMA nodes."""
    taken = {"resources": {const.RC_CELL_CPU: 20}}
    return {
        "allocations": {host.uuid: OTHER} | {child(host, n): taken for n in nodes},
        "mappings": {"": [host.uuid]} | mappings,
    }


def host_of(*offers, name="hp1", shape="2x20", named=True, pinned=()):
    """Return a host whose candidates take these NUMA nodes.

    :param named: whether nova-compute knows its nodes by name
    :param pinned: how many CPUs of its nodes are taken
    """
    # Nova counts what it claims by pages.
    pages = [(4, 1 << 26, 0, 0)]
    topology = states.numa_topology(shape, mempages=pages)
    for cell in topology.cells:
        physnets = {f"perfvm_cell_{cell.id}"} if named else set()
        cell.network_metadata = objects.NetworkMetadata(
            physnets=physnets, tunneled=False
        )
    for cell, count in zip(topology.cells, pinned, strict=False):
        cell.pin_cpus(set(sorted(cell.pcpuset)[:count]))
    host = states.host_state(name, topology)
    host.allocation_candidates = [candidate(host, *nodes) for nodes in offers]
    return host


def pinned_spec(vcpus=4, nodes=1, **specs):
    specs = {"hw:cpu_policy": "dedicated", "hw:numa_nodes": str(nodes)} | specs
    return states.request_spec(vcpus=vcpus, memory_mb=4096, extra_specs=specs)


class SteeringCase(ConfigCase):
    def setUp(self):
        super().setUp()
        self.filter = numa_filter.PerfVMNUMATopologyFilter()

    def steered(self, spec, *hosts):
        return list(self.filter.filter_all(hosts, spec))

    def nodes(self, *claims):
        """Return the nodes of each candidate, in the order that Nova tries them."""
        return [
            tuple(
                sorted(
                    cell.id
                    for cell in host.numa_topology.cells
                    if child(host, cell.id) in candidate["allocations"]
                )
            )
            for host in claims
            for candidate in host.allocation_candidates
        ]

    def assert_obeyed(self, spec, *claims):
        """Look that nova-compute would claim the nodes of each first candidate."""
        for host in claims:
            fit = hardware.numa_fit_instance_to_host(
                host.numa_topology,
                spec.numa_topology.obj_clone(),
                limits=host.limits["numa_topology"],
                provider_mapping=None,
            )
            self.assertEqual(
                self.nodes(host)[0], tuple(sorted(cell.id for cell in fit.cells))
            )


class CandidatesTest(SteeringCase):
    def test_the_fullest_nodes_that_fit_come_first(self):
        spec = pinned_spec(8)
        every = [(0,), (1,), (2,), (3,)]
        host = host_of(*every, shape="4x20", pinned=(0, 16, 4, 4))
        found = self.steered(spec, host)
        self.assertEqual([(2,), (3,), (0,)], self.nodes(*found))
        self.assert_obeyed(spec, *found)
        self.assertEqual(
            {"perfvm_cell_2"},
            found[0].limits["numa_topology"].network_metadata.physnets,
        )
        # What came is left alone.
        self.assertEqual(every, self.nodes(host))
        self.assertEqual({}, host.limits)

    def test_whatever_nova_would_choose(self):
        for pack in (False, True):
            self.config.config(
                packing_host_numa_cells_allocation_strategy=pack, group="compute"
            )
            for nodes in ((0,), (1,)):
                for pinned in ((4, 0), (0, 4)):
                    spec = pinned_spec()
                    found = self.steered(spec, host_of(nodes, pinned=pinned))
                    self.assertEqual([nodes], self.nodes(*found))
                    self.assert_obeyed(spec, *found)

    def test_vms_of_several_nodes(self):
        spec = pinned_spec(8, nodes=2)
        # Of the last, Nova would take any node for the guest's second.
        host = host_of((0, 1), (1, 3), (2,), shape="4x20", pinned=(0, 0, 0, 4))
        found = self.steered(spec, host)
        self.assertEqual([(1, 3), (0, 1)], self.nodes(*found))
        self.assert_obeyed(spec, *found)

    def test_placements_order_stays_for_one_node(self):
        host = host_of((1,), (0,), (1,), (0,))
        for number, each in enumerate(host.allocation_candidates):
            each["mappings"]["number"] = number
        found = self.steered(pinned_spec(), host)
        order = [
            each["mappings"]["number"]
            for host in found
            for each in host.allocation_candidates
        ]
        self.assertEqual([1, 3, 0, 2], order)

    def test_no_room(self):
        full = host_of((0,), (1,), pinned=(20, 18))
        self.assertEqual([], self.steered(pinned_spec(), full))
        # There is, but not on what Placement offers.
        self.assertEqual([], self.steered(pinned_spec(), host_of((0,), pinned=(20,))))
        threads = pinned_spec(**{"hw:cpu_thread_policy": "require"})
        self.assertEqual([], self.steered(threads, host_of((0,))))

    def test_nodes_of_others(self):
        host = host_of((0,))
        stranger = {uuidsentinel.stranger: {"resources": {const.RC_CELL_CPU: 4}}}
        strange = copy.deepcopy(host.allocation_candidates[0])
        strange["allocations"] |= stranger
        host.allocation_candidates[:0] = [
            {"allocations": stranger, "mappings": {}},
            strange,
            candidate(host),
        ]
        found = self.steered(pinned_spec(), host)
        self.assertEqual([candidate(host, 0)], found[0].allocation_candidates)
        del host.allocation_candidates[-1]
        self.assertEqual([], self.steered(pinned_spec(), host))

    def test_networks_of_the_request_count_too(self):
        spec = pinned_spec()
        spec.network_metadata = objects.NetworkMetadata(
            physnets={"left"}, tunneled=True
        )
        before = primitive(spec)
        host = host_of((0,), (1,))
        host.numa_topology.cells[1].network_metadata.physnets.add("left")
        found = self.steered(spec, host)
        self.assertEqual([(1,)], self.nodes(*found))
        metadata = found[0].limits["numa_topology"].network_metadata
        self.assertEqual({"left", "perfvm_cell_1"}, metadata.physnets)
        self.assertTrue(metadata.tunneled)
        self.assertEqual(before, primitive(spec))

    def test_a_pretended_rebuild_is_steered(self):
        spec = pinned_spec()
        spec.scheduler_hints = {"_nova_check_type": ["rebuild"]}
        found = self.steered(spec, host_of((1,)))
        self.assert_obeyed(spec, *found)

    def test_live_migrations(self):
        """Where nova-compute gets no limits of them, they go where Nova likes it."""
        spec = pinned_spec()
        spec.ignore_hosts = ["hp0"]
        fullest, novas = [2, 0, 1], [1, 2, 0]
        for state, obeys, expected in (
            ("migrating", True, fullest),
            ("migrating", False, novas),
            ("migrating", None, novas),
            ("resize_prep", False, fullest),
        ):
            server = objects.Instance(task_state=state)
            steering = numa_filter.steering
            self.patch(steering.instances, "find", lambda _, s=server: s)
            self.patch(steering.nova_fixes, "has_fix", lambda _, has=obeys: has)
            offers = ((0,), (1,), (2,))
            host = host_of(*offers, shape="4x20", pinned=(2, 1, 3, 9))
            found = self.steered(spec, host)
            self.assertEqual([(node,) for node in expected], self.nodes(*found))
            self.assert_obeyed(spec, *found)

    def test_without_candidates_of_nodes_all_is_as_before(self):
        for spec in (pinned_spec(), states.request_spec(**states.GENERAL)):
            host = states.host_state()
            self.assertIs(host, *self.steered(spec, host))
        plain = states.request_spec(**states.GENERAL)
        host = host_of((0,))
        self.assertIs(host, *self.steered(plain, host))

    def test_hosts_that_are_alike_are_judged_once(self):
        hosts = [host_of((0,), (1,), name=f"hp{n}") for n in range(5)]
        hosts.append(host_of((0,), (1,), name="other", pinned=(1,)))
        with asked() as fit:
            self.assertEqual(12, len(self.steered(pinned_spec(), *hosts)))
        self.assertEqual(4, fit.call_count)

        class Unhashable:
            __hash__ = None

        hosts[0].numa_topology.cells[0].of_a_release_to_come = Unhashable()
        with asked() as fit:
            self.assertEqual(12, len(self.steered(pinned_spec(), *hosts)))
        self.assertEqual(6, fit.call_count)


class ClaimsTest(SteeringCase):
    """What Nova tries to claim: the first candidate of each HostState."""

    def test_each_node_of_a_host_is_tried(self):
        few = [host_of((0,), (1,), (0,), name=f"hp{n}") for n in range(16)]
        found = self.steered(pinned_spec(), *few)
        self.assertEqual(
            [[(0,), (0,)], [(1,)]] * 16, [self.nodes(claim) for claim in found]
        )
        many = [*few, host_of((0,), (1,), name="another")]
        found = self.steered(pinned_spec(), *many)
        self.assertEqual(
            [[(0,), (0,), (1,)]] * 16 + [[(0,), (1,)]], [self.nodes(c) for c in found]
        )

    def test_after_a_claim_each_host_stands_once(self):
        spec = pinned_spec()
        hosts = [host_of((0,), (1,)), host_of((0,), (1,), name="hp2")]
        found = self.steered(spec, *hosts)
        found[1].consume_from_request(spec)
        # Nova takes alternates of these, and skips those without candidates.
        left = [(claim.host, self.nodes(claim)) for claim in found if self.nodes(claim)]
        self.assertEqual([("hp1", [(0,), (1,)]), ("hp2", [(0,), (1,)])], left)
        # The next server finds the CPUs of the first taken.
        spec.instance_uuid = uuidsentinel.second
        again = self.steered(spec, *found)
        self.assertEqual([(1,), (0,), (0,), (1,)], self.nodes(*again))
        self.assert_obeyed(spec, *again)

    def test_a_choice_among_the_best_hosts(self):
        """[filter_scheduler]host_subset_size: Nova takes any of the first ones."""
        self.config.config(group="filter_scheduler", host_subset_size=2)
        spec = pinned_spec(12)
        hosts = [host_of((0,), (1,))]
        for server in (uuidsentinel.first, uuidsentinel.second):
            spec.instance_uuid = server
            weighed = [weights.WeighedHost(h, 0.0) for h in self.steered(spec, *hosts)]
            nova = mock.Mock()
            nova.host_manager.get_weighed_hosts.return_value = weighed
            with mock.patch("random.choice", operator.itemgetter(-1)):
                hosts = manager.SchedulerManager._get_sorted_hosts(nova, spec, [], 0)
            self.assertEqual(len(weighed), len(set(map(id, hosts))))
            hosts[0].consume_from_request(spec)
        # Both nodes have a server.
        self.assertEqual([], self.steered(spec, *hosts))


class NamesTest(SteeringCase):
    """Hosts whose nova-compute does not know its nodes by name."""

    def lines(self, words):
        return [line for line in self.log.output.splitlines() if words in line]

    def test_they_are_refused_and_logged_once(self):
        spec, offers = pinned_spec(), ((0,), (1,))
        unnamed, named = host_of(*offers, named=False), host_of(*offers)
        self.assertEqual([], self.steered(spec, unnamed))
        self.assertEqual([], self.steered(spec, unnamed))
        (line,) = self.lines("PerfVMNUMATopologyFilter cannot steer VMs on host hp1")
        self.assertIn("nova-perfvm host config", line)
        self.assertEqual([named] * 2, self.steered(spec, named))
        self.assertEqual(1, len(self.lines("can steer VMs on host hp1 (hp1) again")))

    def test_each_node_has_its_own_name_alone(self):
        def rename(node, *physnets):
            host = host_of((0,))
            metadata = host.numa_topology.cells[node].network_metadata
            metadata.physnets = set(physnets)
            return host

        for host in (
            rename(1, "perfvm_cell_0", "perfvm_cell_1"),
            rename(0, "perfvm_cell_1"),
            rename(0),
        ):
            self.assertEqual([], self.steered(pinned_spec(), host))
        # No VM comes there.
        self.assertEqual(1, len(self.steered(pinned_spec(), rename(1, "left"))))

    def test_cells_from_before_nova_knew_networks(self):
        host = host_of((0,))
        del host.numa_topology.cells[0]._obj_network_metadata
        self.assertEqual([], self.steered(pinned_spec(), host))


class SeveralServersTest(SteeringCase):
    """Nova's loop over the servers of one request."""

    def claim(self, spec, hosts):
        """Filter and claim as Nova does; return the hosts and what was claimed."""
        spec.instance_uuid = uuidutils.generate_uuid()
        hosts = self.steered(spec, *hosts)
        hosts[0].consume_from_request(spec)
        return hosts

    def test_each_server_keeps_its_limits(self):
        spec = pinned_spec(12)
        hosts = [host_of((0,), (1,)), host_of((0,), (1,), name="hp2")]
        claimed = []
        for _ in range(2):
            hosts = self.claim(spec, hosts)
            claimed.append(hosts[0])
        left = self.steered(spec, *hosts)
        self.assertEqual(
            [{"perfvm_cell_0"}, {"perfvm_cell_1"}],
            [c.limits["numa_topology"].network_metadata.physnets for c in claimed],
        )
        # The host is full, and no alternate either.
        self.assertEqual(["hp2"], [host.host for host in left])
        self.assertEqual([], [host for host in left if host in claimed])

    def test_a_claimed_host_is_no_alternate(self):
        hosts = [host_of((0,), (1,)), host_of((0,), (1,), name="hp2")]
        spec = pinned_spec()
        hosts = self.claim(spec, hosts)
        claimed = hosts[0]
        again = self.steered(spec, *hosts)
        self.assertEqual(["hp2"], [host.host for host in again if host != claimed])
        self.assertEqual(1, len({claimed, again[0]}))

    def test_small_vms_fill_a_node(self):
        spec, hosts, nodes = pinned_spec(4), [host_of((0,), (1,))], []
        for _ in range(6):
            hosts = self.claim(spec, hosts)
            nodes.append(self.nodes(hosts[0])[0])
        self.assertEqual([(0,)] * 5 + [(1,)], nodes)


class AnotherMethodTest(SteeringCase):
    """Where Nova's method is not the known one, it judges too."""

    def test_it_judges_before(self):
        class Changed(numa_filter.PerfVMNUMATopologyFilter):
            def host_passes(self, host_state, spec_obj):
                passes = super().host_passes(host_state, spec_obj)
                return passes and host_state.host != "hp2"

        hosts = [host_of((1,), (0,), name=name) for name in ("hp1", "hp2")]
        claimed = hosts[0].limits["numa_topology"] = object()
        found, _ = Changed().filter_all(hosts, pinned_spec())
        self.assertEqual("hp1", found.host)
        self.assertEqual(
            {"perfvm_cell_0"}, found.limits["numa_topology"].network_metadata.physnets
        )
        self.assertIs(claimed, hosts[0].limits["numa_topology"])


GROUP = f"{uuidsentinel.pci_request}-0"


def card(number):
    """Return the provider of a card of the host."""
    return getattr(uuidsentinel, f"card_{number}")


def device(policy, request_id=uuidsentinel.pci_request):
    return objects.InstancePCIRequest(
        count=1,
        alias_name="card",
        spec=[random_hosts.DEVICE],
        numa_policy=policy,
        request_id=request_id,
    )


class DevicesTest(SteeringCase):
    """Hosts of two NUMA nodes with PCI devices; node 0 is the fuller one."""

    def asking(self, policy):
        spec = pinned_spec()
        spec.pci_requests = objects.InstancePCIRequests(requests=[device(policy)])
        return spec

    def host(self, *cards, pinned=(4, 0)):
        """Return a host with a device on each of these nodes, and all candidates."""
        host = host_of(pinned=pinned)
        pools = [random_hosts.pool(node, 1) for node in cards]
        for number, pool in enumerate(pools):
            pool.tags["rp_uuid"] = card(number)
        host.pci_stats = stats.PciDeviceStats(
            host.numa_topology, objects.PciDevicePoolList(objects=pools)
        )
        host.allocation_candidates = [
            candidate(host, node, **{GROUP: [card(number)]})
            for node in (0, 1)
            for number in range(len(cards))
        ]
        return host

    def test_the_kept_host_gives_each_device_once(self):
        """The claimed node's, whichever Nova alone would have taken."""
        self.server()
        spec, host = self.asking("required"), self.host(0, 1)
        for node in (0, 1):
            first, *_ = self.steered(spec, host)
            self.assertEqual([(node,)], self.nodes(first))
            first.consume_from_request(spec)
            self.assertEqual([node], [cell.id for cell in spec.numa_topology.cells])
            counts = {pool["numa_node"]: pool["count"] for pool in host.pci_stats.pools}
            self.assertEqual(0, counts.get(node, 0), counts)
            spec = self.asking("required")
        self.assertEqual([], self.steered(spec, host))

    def server(self, record=None, aliases=None):
        """Let a request be of this server; None for a new one.

        :param aliases: the NUMA policy of the alias; None for no alias
        """
        self.patch(instances, "find", lambda _uuid: record)

        def rebuilt(_flavor):
            if aliases is None:
                raise exception.PciRequestAliasNotDefined(alias="card")
            made = [device(aliases, uuidsentinel.rebuilt)]
            return objects.InstancePCIRequests(requests=made)

        self.patch(instances.pci_request, "get_pci_requests_from_flavor", rebuilt)

    def order(self, spec, host):
        """Return NUMA nodes of the CPUs, and the card, in the order of attempts."""
        found = self.steered(spec, host)
        cards = [
            each["mappings"][GROUP]
            for claim in found
            for each in claim.allocation_candidates
        ]
        return list(zip(self.nodes(*found), cards, strict=True))

    def test_near_nodes_come_first_for_who_asks(self):
        self.server()
        for policy in ("preferred", "legacy", "required", "socket"):
            found = self.steered(self.asking(policy), self.host(1))
            self.assertEqual((1,), self.nodes(*found)[0])
            # Those of equal room, by the number of devices.
        host = self.host(0, 1, pinned=())
        host.pci_stats.pools[1]["count"] = 2
        self.assertEqual(
            (1,), self.nodes(*self.steered(self.asking("legacy"), host))[0]
        )

    def test_nodes_with_devices_come_last_for_who_asks_none(self):
        for cards, expected in (((0,), 1), ((1,), 0), ((0, 1), 0)):
            found = self.steered(pinned_spec(), self.host(*cards))
            self.assertEqual((expected,), self.nodes(*found)[0])

    def test_nova_compute_sees_no_devices_where_none_are_asked_for(self):
        """So it is a live migration without limits that goes to their node."""
        spec = pinned_spec()
        spec.ignore_hosts = ["hp0"]
        self.server(objects.Instance(task_state="migrating"))
        self.patch(numa_filter.steering.nova_fixes, "has_fix", lambda _: False)
        found = self.steered(spec, self.host(0, pinned=()))
        self.assertEqual((0,), self.nodes(*found)[0])

    def test_devices_are_those_of_the_candidate(self):
        self.server()
        found = self.order(self.asking("required"), self.host(0, 1))
        self.assertEqual([((0,), [card(0)]), ((1,), [card(1)])], found)

    def test_a_move_fits_what_nova_compute_claims(self):
        """It goes by the alias in a move, and by the record in an unshelve."""
        moved = objects.Instance(
            host="hp0",
            vm_state="active",
            pci_requests=objects.InstancePCIRequests(requests=[device("preferred")]),
        )
        offloaded = objects.Instance(
            host=None, vm_state="shelved_offloaded", pci_requests=moved.pci_requests
        )
        near, both = [(1,)], [(1,), (0,)]
        for _name, record, own, alias, expected in (
            ("a new server", None, "preferred", "legacy", both),
            ("as the alias says", moved, "preferred", "legacy", near),
            ("socket", moved, "socket", "legacy", near),
            ("both prefer", moved, "preferred", "preferred", both),
            ("the flavor is stricter", moved, "required", "preferred", near),
            ("the alias is stricter", moved, "preferred", "required", near),
            ("no alias: legacy is Nova's default", moved, "preferred", None, near),
            ("unshelve", offloaded, "preferred", "legacy", both),
        ):
            self.server(record, alias)
            found = self.steered(self.asking(own), self.host(1))
            self.assertEqual(expected, self.nodes(*found))

    def test_a_move_comes_to_the_devices_that_nova_compute_claims(self):
        """Those that it makes anew are in no candidate: it takes the first card."""
        record = objects.Instance(
            host="hp0",
            vm_state="active",
            pci_requests=objects.InstancePCIRequests(requests=[]),
        )
        self.server(record, "legacy")
        host = self.host(1, 1)
        host.allocation_candidates.reverse()
        found = self.order(self.asking("preferred"), host)
        self.assertEqual([((1,), [card(0)]), ((1,), [card(1)])], found)
