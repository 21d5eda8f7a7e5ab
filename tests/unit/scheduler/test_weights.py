# SPDX-License-Identifier: Apache-2.0

from nova import conf as nova_conf
from nova import objects
from nova.scheduler import weights as nova_weights

from nova_perfvm.rules import packing
from nova_perfvm.scheduler import weights
from tests.benchmark import slots_left
from tests.unit.scheduler import states
from tests.unit.scheduler.case import ConfigCase
from tests.unit.scheduler.states import GENERAL

CONF = nova_conf.CONF


class WeigherCase(ConfigCase):
    def setUp(self):
        super().setUp()
        self.handler = nova_weights.HostWeightHandler()

    def weighers(self):
        """Return all weighers, loaded as the documentation says."""
        return [
            cls()
            for cls in self.handler.get_matching_classes(
                [
                    "nova.scheduler.weights.all_weighers",
                    "nova_perfvm.scheduler.weights.PerfVMWeigher",
                ]
            )
        ]

    def order(self, hosts, spec):
        """Return the hosts' names, best first, and all weighers asked."""
        spec.instance_group = None
        weighed = self.handler.get_weighed_objects(self.weighers(), hosts, spec)
        return [host.obj.host for host in weighed]

    def open_host(self, name, general=0, **facts):
        """Return a host that serves either class, with VMs of 2 vCPUs."""
        host = slots_left.make_host(0)
        host.host = host.nodename = name
        for _ in range(general):
            host.consume_from_request(states.request_spec(**GENERAL))
        for key, value in facts.items():
            setattr(host, key, value)
        return host

    def aggregate(self, **metadata):
        return [objects.Aggregate(id=1, metadata=metadata, hosts=[])]


class WeightTest(WeigherCase):
    def test_weights_are_points_of_the_scale_whatever_else_is_in_the_list(self):
        hosts = [
            self.open_host("untouched"),
            self.open_host("unfit", general=3),
            slots_left.make_host(1, slots=False),
        ]
        self.config.config(group="perfvm", weight_multiplier=1.0)
        ours = weights.PerfVMWeigher()
        expected = {"untouched": -0.77, "unfit": -0.47, "host1": 0.0}
        for several in (hosts, hosts[:2], hosts[1:]):
            weighed = self.handler.get_weighed_objects(
                [ours], several, states.request_spec(**GENERAL)
            )
            self.assertEqual(
                {host.host: expected[host.host] for host in several},
                {host.obj.host: round(host.weight, 6) for host in weighed},
            )

    def test_nova_decides_where_no_slot_is_at_stake(self):
        hosts = [slots_left.make_host(n, slots=False) for n in range(3)]
        hosts[0].free_ram_mb -= 4096
        hosts[2].free_ram_mb -= 8192
        self.assertEqual(
            ["host1", "host0", "host2"],
            self.order(hosts, states.request_spec(**GENERAL)),
        )


class MultiplierTest(WeigherCase):
    """Of two hosts that differ by a point, ours decides by default."""

    def setUp(self):
        super().setUp()
        # Every weigher of Nova that has an opinion is for the first.
        self.fewer = self.open_host(
            "fewer", general=1, num_io_ops=0, hypervisor_version=9
        )
        self.more = self.open_host(
            "more",
            general=2,
            num_io_ops=8,
            hypervisor_version=8,
            free_ram_mb=8192,
            free_disk_mb=1024,
            vcpus_used=150,
        )
        self.hosts = [self.fewer, self.more]
        self.spec = states.request_spec(**GENERAL)

    def test_one_point_is_worth_more_than_all_of_novas_unit_multipliers(self):
        nova = [
            weigher.weight_multiplier(self.fewer)
            for weigher in self.weighers()
            if not isinstance(weigher, weights.PerfVMWeigher)
        ]
        units = sum(abs(m) for m in nova if abs(m) <= 1)
        self.assertEqual(9, units)
        self.assertGreater(CONF.perfvm.weight_multiplier / packing.FULL_SCALE, units)
        # And the rest stay above anything that ours can say.
        self.assertLess(
            2 * CONF.perfvm.weight_multiplier, min(abs(m) for m in nova if abs(m) > 1)
        )

    def test_who_has_a_say(self):
        ours, theirs = ["more", "fewer"], ["fewer", "more"]
        for options, failed, expected in (
            ({}, 0, ours),
            # A host that fails to build is left alone.
            ({}, 1, theirs),
            ({"weight_multiplier": 0.0}, 0, theirs),
            ({"weight_multiplier": 1000.0, "mode": "observe"}, 0, theirs),
        ):
            self.config.config(group="perfvm", **options)
            self.more.failed_builds = failed
            self.assertEqual(expected, self.order(self.hosts, self.spec), options)

    def test_spread(self):
        self.config.config(group="perfvm", weight_multiplier=-1000.0)
        hosts = [*self.hosts, self.open_host("untouched")]
        self.assertEqual("untouched", self.order(hosts, self.spec)[0])

    def test_aggregates(self):
        untouched = self.open_host("untouched")
        untouched.aggregates = self.aggregate(perfvm_weight_multiplier="0")
        # Hosts with no say count as hosts without slots.
        hosts = [self.more, untouched]
        self.assertEqual(["untouched", "more"], self.order(hosts, self.spec))
        self.more.aggregates = self.aggregate(perfvm_weight_multiplier="strong")
        self.assertEqual(["more", "fewer"], self.order(self.hosts, self.spec))
        self.assertIn("perfvm_weight_multiplier", self.log.output)


class SlotsLeftTest(WeigherCase):
    """The same VMs come and go, with the weigher and without."""

    def compare(self, **load):
        """Return what became of the VMs with Nova alone, stacking, and ours."""
        load = slots_left.Workload(arrivals=400, hp=20, general=40, **load)
        alone, stacked, packed = slots_left.compare(load).values()
        self.assertEqual(alone.asked, packed.asked)
        # The load fits: 20 VMs at a time in 36 slots or more, the rest on two
        # hosts.
        self.assertEqual({"hp": 0, "general": 0}, packed.refused)
        self.assertGreater(alone.refused["hp"], alone.asked["hp"] // 10)
        # At its worst moment better than without it at the best one.
        self.assertGreater(min(packed.free), max(alone.free))
        return stacked, packed

    def test_hosts_that_serve_either_class(self):
        self.compare(hosts=20)

    def test_beside_hosts_for_general_vms(self):
        stacked, packed = self.compare(hosts=18, shared_hosts=2)
        # Stacking does not know which hosts have slots to lose.
        self.assertGreater(packed.mean_free, stacked.mean_free)
