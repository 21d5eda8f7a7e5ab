# SPDX-License-Identifier: Apache-2.0
"""The order of hosts beside that of the real nova-scheduler, request by request.

PERFVM_RANDOM_SEED (7) says which requests; tests/long has 500.
"""

import collections
import itertools
import os
import random
import uuid

import fixtures
from nova import conf as nova_conf
from nova import context, objects
from nova.virt import hardware
from oslo_messaging.rpc.dispatcher import ExpectedException
from oslo_serialization import jsonutils
from testtools.content import text_content

from nova_perfvm.cloud import candidates
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.diagnose import explain, ranking
from nova_perfvm.diagnose.verdicts import SchedulerSettings
from tests.cloud.servers import until
from tests.functional import base, cells, client

SEED = int(os.environ.get("PERFVM_RANDOM_SEED", "7"))
# What Nova makes of images' properties is never known.
WEIGHERS = [w for w in ranking.weighers_of(None) if w.column != "image_props"]
AGGREGATES = ("fast", "slow")
FLAVORS = (base.GENERAL_2, base.HP_64, "big")
METRICS = "cpu.frequency=1.5, cpu.user.time=-2"
FILE = {
    ("filter_scheduler", "weight_classes"): "nova.scheduler.weights.all_weighers,"
    "nova_perfvm.scheduler.weights.PerfVMWeigher",
    ("metrics", "weight_setting"): METRICS,
}
SETTINGS = SchedulerSettings(fallback=True, isolated=False, multitenancy=False)


def name_of(host):
    """Return the name of a ranked host."""
    return host.case.view.host


class RankingTest(client.ClientMixin, base.FunctionalTest):
    """Hosts of all kinds, whose reports and multipliers change at random."""

    CLOUD = {  # noqa: RUF012
        "disable_fallback_pcpu_query": False,
        "options": {
            ("metrics", "weight_setting"): METRICS.split(", "),
            ("metrics", "required"): False,
        },
    }
    # Three requests each.
    STATES = 9
    # How often one of these has to be met in nine states.
    MET = {"pairs": 40, "turned": 5, "certain": 10}  # noqa: RUF012

    def start_cloud(self, **options):
        super().start_cloud(**options)
        self.rng = random.Random(SEED)
        self.offered = {}
        for number in range(3):
            self.cloud.start_host(f"open{number}", memory_gb=300 + 100 * number)
        for number in range(2):
            self.cloud.start_host(f"g{number}", "2x10", shared="0-19")
        self.cloud.start_host("hp", dedicated="0-39")
        # The smallest host is too small for it.
        self.cloud.create_flavor("big", 8, 350 * 1024)
        for flavor in FLAVORS:
            self.boot(flavor)
        self.admin = context.get_admin_context()
        self.admin.project_id = self.cloud.api.project_id
        self.admin.user_id = "admin"
        self.aggregates = [
            self.cloud.api.post_aggregate({"aggregate": {"name": name}})["id"]
            for name in AGGREGATES
        ]
        for name, aggregate in (
            *(("open0", 0), ("open1", 0), ("g0", 0)),
            *(("open1", 1), ("g1", 1), ("hp", 1)),
        ):
            self.cloud.api.add_host_to_aggregate(self.aggregates[aggregate], name)
        self.manager = self.cloud._services.scheduler.manager
        weigh = self.manager.host_manager.get_weighed_hosts

        def weighed(hosts, spec):
            found = weigh(hosts, spec)
            self.order.append([(host.obj.host, host.weight) for host in found])
            return found

        self.useFixture(
            fixtures.MockPatchObject(
                self.manager.host_manager, "get_weighed_hosts", weighed
            )
        )

    def test_the_order_is_the_schedulers(self):
        self.met = collections.Counter()
        for number in range(self.STATES):
            self.ratios = number % 2 == 1
            self.change()
            seen = read_snapshot(self.admin_api)
            told = cells.with_nodes(seen)
            for flavor in FLAVORS:
                self.compare(seen, told, flavor, f"{flavor}: state {number}, {SEED}")
            self.turn(told, self.rng.choice(FLAVORS))
        for what, times in self.MET.items():
            least = times * self.STATES / 9
            self.assertGreaterEqual(self.met[what], least, self.met)
        self.addDetail("met", text_content(str(self.met)))
        status, rows, said = self.run_json("explain", "--flavor", "big", "--ranking")
        self.assertEqual(0, status, said)
        reported = {node.host: node.free_ram_mb for node in self.nodes()}
        for row in rows:
            self.assertEqual(reported[row["Host"]], row["ram"]["raw"])
        self.assertIn("not known from here", said)

    def change(self):
        """Let computes report something else, and set other multipliers."""
        rng = self.rng
        for node in self.nodes():
            node.running_vms = rng.choice([0, 0, rng.randint(1, 9)])
            node.stats = {
                "num_instances": str(node.running_vms),
                "io_workload": str(rng.choice([0, 0, 1, 4])),
                "failed_builds": str(rng.choice([0, 0, 0, 2])),
            }
            node.vcpus_used = rng.randint(0, 30)
            node.free_ram_mb = rng.randint(-5000, 500_000)
            node.free_disk_gb = rng.randint(0, 900)
            node.disk_available_least = rng.choice([None, rng.randint(-5, 900)])
            node.hypervisor_version = rng.choice([8_000_000, 9_001_000])
            # Placement, which tells it without the database, is told nothing new.
            node.cpu_allocation_ratio = rng.choice([1.0, 4.0]) if self.ratios else 4.0
            pool = {"product_id": "a", "vendor_id": "b", "numa_node": 0, "tags": {}}
            pool = objects.PciDevicePool(count=rng.randint(1, 120), **pool)
            pools = [pool] * rng.randint(0, 1)
            node.pci_device_pools = objects.PciDevicePoolList(objects=pools)
            values = {"cpu.frequency": 2000, "cpu.user.time": 10}
            node.metrics = jsonutils.dumps(
                [
                    {"name": name, "value": rng.randint(0, most), "source": "x"}
                    | {"timestamp": "2026-01-01T00:00:00.000000"}
                    for name, most in values.items()
                ]
            )
            node.save()
        self.options = dict(FILE)
        for weigher in WEIGHERS:
            value = rng.choice([weigher.default, 0.0, rng.uniform(-3, 3)])
            if weigher.column == "perfvm":
                value = rng.choice([1000.0, 0.0, -3.5])
            self.set_option(weigher, max(value, weigher.floor))
        self.set_metadata(
            {
                (aggregate, weigher.key): str(rng.choice([rng.uniform(-2, 2), "x"]))
                for aggregate in self.aggregates
                for weigher in rng.sample(WEIGHERS, 2)
            }
        )

    def nodes(self):
        cell = self.cloud._services.cell_mappings["cell1"]
        with context.target_cell(context.get_admin_context(), cell) as targeted:
            return objects.ComputeNodeList.get_all(targeted)

    def set_option(self, weigher, value):
        group, name = weigher.option
        nova_conf.CONF.set_override(name, value, group)
        self.options[weigher.option] = repr(value)

    def set_metadata(self, metadata):
        """Set metadata of aggregates, and wait until the scheduler has heard of it."""
        by_id = self.manager.host_manager.aggs_by_id
        for aggregate in self.aggregates:
            wanted = {
                key: text for (of, key), text in metadata.items() if of == aggregate
            }
            known = dict.fromkeys(by_id[aggregate].metadata)
            body = {"set_metadata": {"metadata": known | wanted}}
            self.cloud.api.api_post(f"/os-aggregates/{aggregate}/action", body)
            until(lambda of=aggregate, to=wanted: by_id[of].metadata == to, "metadata")
        self.metadata = metadata

    def compare(self, seen, told, flavor, where):
        """Look whether the order is Nova's, and what is called certain is so.

        :param seen: what the API shows
        :param told: with what the database has
        """
        order = self.rank(told, flavor)
        real = self.ask(flavor)
        self.met["requests"] += 1
        self.met["hosts"] += len(real)
        weights = dict(real)
        self.assertEqual(weights.keys(), {name_of(h) for h in order.hosts}, where)
        self.assertEqual([], order.unknown)
        for host in order.hosts:
            delta = max(host.rounding, 1e-15)
            found = weights[name_of(host)]
            self.assertAlmostEqual(found, host.weight, delta=delta, msg=where)
        places = [name for name, _ in real]
        for pair in itertools.pairwise(order.hosts):
            self.met["pairs"] += 1
            if ranking.equal(*pair):
                self.met["equal"] += 1
                continue
            self.assertLess(*(places.index(name_of(host)) for host in pair), where)
        if self.ratios:
            return
        order = self.rank(seen, flavor)
        self.assertEqual(weights.keys(), {name_of(h) for h in order.hosts}, where)
        for above, below in itertools.combinations(order.hosts, 2):
            if not ranking.equal(above, below) and not order.rests_on(above, below):
                self.met["certain"] += 1
                found = weights[name_of(above)], weights[name_of(below)]
                self.assertGreater(*found, where)

    def turn(self, told, flavor):
        """Make the change that is said to turn two hosts round."""
        order = self.rank(told, flavor)
        if len(order.hosts) < 2:
            return
        above, below = self.rng.choice(list(itertools.pairwise(order.hosts)))
        change = order.smallest_change(above, below)
        if change is None:
            self.met["not to be turned"] += 1
            return
        if change.aggregate:
            index = AGGREGATES.index(change.aggregate)
            key = (self.aggregates[index], change.weigher.key)
            self.set_metadata(self.metadata | {key: str(change.value)})
            self.met["turned by aggregate"] += 1
        else:
            self.set_option(change.weigher, change.value)
        real = dict(self.ask(flavor))
        found = real[name_of(below)], real[name_of(above)]
        self.assertGreater(*found, f"{flavor}: {change}, seed {SEED}")
        self.met["turned"] += 1

    def rank(self, seen, flavor):
        request, _ = explain.request_of(seen, flavor=flavor, volume_backed=False)
        if flavor not in self.offered:
            # Nothing changes in Placement.
            self.offered[flavor] = candidates.offered(
                self.admin_api, request, SETTINGS, seen.aggregates
            )
        offered = self.offered[flavor]
        found = explain.explain(self.policy, seen, request, SETTINGS, offered=offered)
        views = [verdict.view for verdict in found.verdicts if verdict.accepted]
        return ranking.rank(self.policy, request, views, self.options)

    def ask(self, flavor):
        """Ask nova-scheduler; return its hosts with their weights, the best first."""
        server = str(uuid.uuid4())
        kind = objects.Flavor.get_by_name(self.admin, flavor)
        image = objects.ImageMeta(properties=objects.ImageMetaProps())
        spec = objects.RequestSpec.from_components(
            self.admin,
            server,
            image,
            kind,
            hardware.numa_get_constraints(kind, image),
            objects.InstancePCIRequests(requests=[]),
            {},
            None,
            None,
            security_groups=objects.SecurityGroupList(objects=[]),
            request_level_params=objects.RequestLevelParams(),
        )
        spec.is_bfv = False
        self.order = []
        try:
            self.manager.select_destinations(
                self.admin, spec_obj=spec, instance_uuids=[server], return_objects=True
            )
        except ExpectedException:
            # No valid host.
            return []
        self.admin_api.placement("DELETE", f"/allocations/{server}")
        return self.order[0]
