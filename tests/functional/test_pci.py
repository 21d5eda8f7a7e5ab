# SPDX-License-Identifier: Apache-2.0
"""PCI devices near NUMA nodes: explain beside the real scheduler."""

import collections
import dataclasses
import itertools
import json
import random
import uuid
from unittest import mock

from nova import exception, objects
from nova.conf import CONF
from nova.pci import request as pci_request
from nova.tests.fixtures import libvirt as fakelibvirt
from testtools.content import text_content

from nova_perfvm import constants as const
from nova_perfvm.cloud import candidates, nova_database
from nova_perfvm.cloud.answers import allocation
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.diagnose import explain
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.facts.demand import RequestError
from nova_perfvm.facts.snapshot import Image
from tests import request_specs
from tests.cloud import DEFAULT_FILTERS
from tests.cloud.hosts import HostSettings
from tests.functional import base
from tests.functional.client import ClientMixin
from tests.functional.minutes import MinutesPass
from tests.functional.scheduling import SchedulingMixin

FILTERS = (*DEFAULT_FILTERS, "PciPassthroughFilter")
POLICIES = ("required", "preferred", "legacy", "socket")
GPU = {"vendor_id": "10de", "product_id": "1db4"}
NIC = {"vendor_id": "8086", "product_id": "154d"}
ALIASES = (
    {"name": "gpu", **GPU},
    {"name": "near", "device_type": "type-PCI", "numa_policy": "required", **GPU},
    {"name": "moving", "live_migratable": "true", **GPU},
    {"name": "staying", "live_migratable": "false", **GPU},
    {"name": "vf", "device_type": "type-VF", "numa_policy": "preferred", **NIC},
    # Whole cards and parts of some have one ID: who says nothing gets no card.
    {"name": "nic", **NIC},
    {"name": "card", "device_type": "type-PF", "numa_policy": "socket", **NIC},
)
# One name for several devices, which Nova does not let Placement count.
EITHER = tuple(
    {"name": "either", "device_type": "type-PCI", "vendor_id": "10DE"} | ids
    for ids in ({"product_id": "1db4"}, {"product_id": "20b0"})
)
# Names that Placement alone knows; without it Nova wants the IDs of devices.
COUNTED = (
    {"name": "gold", "resource_class": "gold"},
    {"name": "fast", "traits": "custom_fast", **GPU},
)
HOSTS = {
    "dedicated1": ("dedicated", "2x20"),
    "dedicated2": ("dedicated", "4x20"),
    "shared1": ("shared", "2x20"),
    "shared2": ("shared", "4x10"),
}
KINDS = ("class", "one", "two", "none")


def write_aliases(case, aliases, *, in_placement):
    """Let Nova read these, as it does when it starts."""
    CONF.set_override("alias", [json.dumps(one) for one in aliases], "pci")
    CONF.set_override("pci_in_placement", in_placement, "filter_scheduler")
    case.addCleanup(CONF.clear_override, "alias", "pci")
    case.addCleanup(CONF.clear_override, "pci_in_placement", "filter_scheduler")
    for name in ("get_alias_from_config", "_get_alias_from_config"):
        read = getattr(pci_request, name, None)
        if hasattr(read, "cache_clear"):
            read.cache_clear()
            case.addCleanup(read.cache_clear)


class TestAgreement(SchedulingMixin, ClientMixin, base.FunctionalTest):
    """What computes report is written for them, so that it is of any kind.

    :cvar VERDICTS: so many are compared, at least
    """

    VERDICTS = 180
    PATIENCE = 3
    CLOUD = {"enabled_filters": FILTERS}  # noqa: RUF012

    def setUp(self):
        super().setUp()
        for name, (mode, shape) in HOSTS.items():
            self.cloud.start_configured(name, self.policy, mode, shape)
        self.random = random.Random(5)
        self.counts, self.codes = collections.Counter(), collections.Counter()
        self.policies = collections.Counter()
        self.settings = settings_for(self.policy)
        # No Glance lists them here.
        self.images = {
            policy: Image(policy, policy, {"hw_pci_numa_affinity_policy": policy})
            for policy in POLICIES
        }
        self.cards = []
        self.admin_api.placement("PUT", "/traits/CUSTOM_FAST")
        self.admin_api.placement("PUT", "/resource_classes/CUSTOM_GOLD")

    def test_explain_agrees_with_the_scheduler(self):
        for number in itertools.count():
            if self.counts[True] + self.counts[False] >= self.VERDICTS:
                break
            self.compare(number)
        told = f"{dict(self.counts)}, {dict(self.codes)}, {dict(self.policies)}"
        self.addDetail("counted", text_content(told))
        for wanted in (const.NOVA_PCI, const.NOVA_PCI_NUMA, const.PLACEMENT_GROUPS):
            self.assertGreater(self.codes[wanted], self.VERDICTS // 100, told)
        self.assertGreater(self.counts[True], self.VERDICTS // 10, told)
        for policy in POLICIES:
            for taken in (True, False):
                met = self.policies[policy, taken]
                self.assertGreaterEqual(met, self.VERDICTS // 200, told)

    def compare(self, number):
        """Fill the hosts anew, and ask for each of some flavors."""
        in_placement = bool(self.random.getrandbits(1))
        aliases = (*ALIASES, *(COUNTED if in_placement else EITHER))
        write_aliases(self, aliases, in_placement=in_placement)
        for node in nova_database.compute_nodes([]):
            self.fill(node, in_placement=in_placement)
        names = sorted({alias["name"] for alias in aliases})
        flavors = [self.flavor(f"{number}-{each}", names) for each in range(12)]
        seen = nova_database.with_cells(
            read_snapshot(self.admin_api),
            nova_database.compute_nodes([]),
            devices=nova_database.server_devices([]),
        )
        seen = dataclasses.replace(seen, images=tuple(self.images.values()))
        for flavor in flavors:
            self.ask(seen, number, flavor)
            self.cloud.api.delete_flavor(flavor)
        for card in self.cards:
            self.admin_api.placement("DELETE", f"/resource_providers/{card}")
        self.cards.clear()

    def fill(self, node, *, in_placement):
        """Let a compute report other servers and other devices."""
        rng, topology = (
            self.random,
            objects.NUMATopology.obj_from_db_obj(node.numa_topology),
        )
        for cell in topology.cells:
            cell.pinned_cpus = set(cell.pcpuset if rng.random() < 0.3 else ())
            cell.memory_usage = cell.memory if rng.random() < 0.2 else 0
            cell.socket = rng.choice((cell.id // 2, cell.id // 2, cell.id, cell.id))
        if rng.random() < 0.1:
            topology.cells[0].socket = None
        node.numa_topology = topology._to_json()
        nodes = [cell.id for cell in topology.cells]
        pools = []
        for number in range(rng.randint(0, 6)):
            made = self.card(rng, rng.choice([*nodes, *nodes, None]), number)
            if in_placement:
                made = self.counted(node, made, number)
            pools += made
        node.pci_device_pools = objects.PciDevicePoolList(
            objects=[objects.PciDevicePool.from_dict(pool) for pool in pools]
        )
        node.save()

    def card(self, rng, numa_node, number):
        """Return the pools of one card, as computes of today report them."""
        pool = {"numa_node": numa_node, "address": f"0000:8{number}:00.0"}
        kind = rng.choice((*("gpu", "vf") * 3, "other", "pf", "vdpa", "nic"))
        pool |= NIC if kind in {"vf", "pf", "vdpa", "nic"} else GPU
        pool["dev_type"] = {"vf": "type-VF", "pf": "type-PF", "vdpa": "vdpa"}.get(
            kind, "type-PCI"
        )
        pool["count"] = rng.randint(1, 3)
        if kind == "other":
            pool["product_id"] = "20b0"
        if rng.random() < 0.4:
            pool["live_migratable"] = rng.choice(("true", "false"))
        if kind in {"vf", "pf"}:
            pool["remote_managed"] = rng.choice(("false", "false", "true"))
        if kind == "vf" and rng.random() < 0.3:
            pool |= {"physical_network": "physnet1", "trusted": "true"}
        return [pool]

    def counted(self, node, pools, number):
        """Return pools that Placement counts, all but those of Neutron."""
        (pool,) = pools
        if "physical_network" in pool:
            return pools
        card = str(uuid.uuid4())
        body = {
            "name": f"{node.host}_{pool['address']}_{card}",
            "uuid": card,
            "parent_provider_uuid": node.uuid,
        }
        self.admin_api.placement("POST", "/resource_providers", body)
        self.cards.append(card)
        name = f"CUSTOM_PCI_{pool['vendor_id']}_{pool['product_id']}".upper()
        name = self.random.choice((name, name, name, "CUSTOM_GOLD"))
        self.admin_api.placement("PUT", f"/resource_classes/{name}")
        total = pool["count"]
        inventory = {name: {"total": total, "max_unit": total}}
        body = {"resource_provider_generation": 0, "inventories": inventory}
        path = f"/resource_providers/{card}"
        self.admin_api.placement("PUT", f"{path}/inventories", body)
        # So does nova-compute 34, and nova-scheduler 34 wants it.
        traits = ["OWNER_NOVA", *self.random.choice(((), ("CUSTOM_FAST",)))]
        body = {"resource_provider_generation": 1, "traits": traits}
        self.admin_api.placement("PUT", f"{path}/traits", body)
        return [pool | {"rp_uuid": card}]

    def flavor(self, name, aliases):
        """Make a flavor that asks for devices, and return its name."""
        rng, kind = self.random, self.random.choice(KINDS)
        many = rng.sample(aliases, rng.choice((1, 1, 1, 2)))
        asked = [f"{one}:{rng.choice((1, 1, 1, 2, 3))}" for one in many]
        specs = {"pci_passthrough:alias": ",".join(asked)}
        if rng.random() < 0.5:
            specs["hw:pci_numa_affinity_policy"] = rng.choice(POLICIES)
        if kind == "class":
            specs |= base.CLAIMS_HP
        elif kind != "none":
            specs["hw:numa_nodes"] = {"one": "1", "two": "2"}[kind]
        vcpus = 20 if kind == "class" else 2
        return self.cloud.create_flavor(name, vcpus, 4096, 0, specs)

    def ask(self, seen, number, flavor):
        """Ask both about each host."""
        policy = self.random.choice(("", "", "", *POLICIES))
        image = self.images.get(policy)
        try:
            request, _ = explain.request_of(
                seen, flavor=flavor, image=policy or None, volume_backed=True
            )
        except RequestError:
            request = None
        admin = self.admin()
        meta = {"id": self.cloud.image}
        if image is not None:
            meta["properties"] = dict(image.properties)
        try:
            self.spec(admin, flavor, meta)
            refused = False
        except exception.ImagePCINUMAPolicyForbidden:
            refused = True
        self.assertEqual(refused, request is None)
        if request is None:
            self.counts["nova-api"] += 1
            return
        offered = candidates.offered(
            self.admin_api, request, self.settings, seen.aggregates
        )
        found = explain.explain(
            self.policy, seen, request, self.settings, offered=offered
        )
        own = "dedicated" if request.facts.pinned else "shared"
        for verdict in found.verdicts:
            host = verdict.view.host
            if not host.startswith(own):
                # Whose rules refuse it, whatever devices it has.
                continue
            taken = self.takes(admin, self.spec(admin, flavor, meta), host)
            compute = verdict.view.compute
            where = (number, request.pci, host, verdict.reasons, compute.pci_pools)
            self.assertEqual(taken, verdict.accepted, (where, request.facts.cells))
            self.counts[taken] += 1
            self.codes.update({reason.code for reason in verdict.reasons})
            if request.facts.cells:
                self.policies.update({(one.policy, taken) for one in request.pci})

    def spec(self, admin, flavor, image):
        spec = request_specs.new_server(admin, str(uuid.uuid4()), flavor, image)
        spec.is_bfv = True
        return spec


class TestPlan(ClientMixin, base.FunctionalTest):
    """Devices that nova-compute finds: one on each NUMA node, or on the first only.

    :cvar IN_PLACEMENT: whether Placement counts them
    :cvar TAKEN: why a host without a free one refuses
    """

    IN_PLACEMENT = False
    TAKEN = const.NOVA_PCI
    PLACEMENT = "slots"
    CLOUD = {"enabled_filters": FILTERS}  # noqa: RUF012
    ALIAS = {  # noqa: RUF012
        "name": "qat",
        "vendor_id": fakelibvirt.PCI_VEND_ID,
        "product_id": fakelibvirt.PCI_PROD_ID,
        "numa_policy": "required",
    }

    def setUp(self):
        super().setUp()
        ids = {key: self.ALIAS[key] for key in ("vendor_id", "product_id")}
        CONF.set_override("device_spec", [json.dumps(ids)], "pci")
        self.addCleanup(CONF.clear_override, "device_spec", "pci")
        CONF.set_override("report_in_placement", self.IN_PLACEMENT, "pci")
        self.addCleanup(CONF.clear_override, "report_in_placement", "pci")
        write_aliases(self, [self.ALIAS], in_placement=self.IN_PLACEMENT)
        # Nova's database is that of the cloud in this process.
        self.enterContext(mock.patch.object(nova_database, "configure"))
        connection = HostSettings.connection

        def with_devices(settings, name, directory):
            made = connection(settings, name, directory)
            made.pci_info = fakelibvirt.HostPCIDevicesInfo(
                num_pci=2 if name == "hp1" else 1, num_pfs=0, num_vfs=0
            )
            return made

        self.enterContext(mock.patch.object(HostSettings, "connection", with_devices))
        for name in ("hp1", "hp2", "hp3"):
            self.cloud.start_configured(name, self.policy, "dedicated")
        self.useFixture(MinutesPass(self.cloud))
        hp = next(f for f in self.cloud.api.get_flavors() if f["name"] == base.HP_64)
        specs = self.cloud.api.api_get(f"/flavors/{hp['id']}/os-extra_specs").body
        specs = specs["extra_specs"] | {"pci_passthrough:alias": "qat:1"}
        self.cloud.create_flavor("hp.qat", 20, 65536, 0, specs)

    def plan(self, *arguments):
        """Return the exit status, the rows, and what was said."""
        return self.run_json("plan", *arguments, "--from-nova-db")

    def test_devices_move_cold_to_where_some_are_free(self):
        servers = [self.boot("hp.qat", host="hp1") for _ in range(2)]
        drain = ("drain", "hp1")
        status, rows, said = self.run_json("plan", *drain)
        self.assertEqual((2, []), (status, rows), said)
        self.assertIn("requests for pci_passthrough:alias", said)
        status, rows, said = self.plan(*drain)
        self.assertEqual((2, []), (status, rows), said)
        self.assertIn(
            "with its PCI devices (qat) Nova migrates it cold only: --cold", said
        )
        # There are CPUs for two of them.
        status, rows, said = self.plan(*drain, "--cold", "--exclude", "hp3")
        self.assertEqual((1, 1), (status, len(rows)), said)
        self.assertIn("no host was found for it", said)

        status, rows, said = self.plan(*drain, "--cold", "--execute", "--yes")

        self.assertEqual((0, ["done"] * 2), (status, [r["State"] for r in rows]), said)
        hosts = sorted(self.servers.show(server).host for server in servers)
        self.assertEqual(["hp2", "hp3"], hosts)
        asked = (
            "explain",
            "--flavor",
            "hp.qat",
            "--boot-from-volume",
            "--from-nova-db",
        )
        status, rows, said = self.run_json(*asked)
        found = {reason["Reason"]: reason["Hosts"] for reason in rows}
        self.assertEqual({"": ["hp1"], self.TAKEN: ["hp2", "hp3"]}, found, said)


class TestPorts(SchedulingMixin, ClientMixin, base.FunctionalTest):
    """Servers that move with ports of a minimum bandwidth, as Neutron counts it."""

    FLAVORS = (base.GENERAL_2,)
    RATES = ("NET_BW_EGR_KILOBIT_PER_SEC", "NET_BW_IGR_KILOBIT_PER_SEC")
    KIND = "CUSTOM_VNIC_TYPE_NORMAL"
    ROUNDS = 8

    def test_explain_agrees_with_the_scheduler(self):
        hosts = ("h1", "h2", "h3")
        self.networks = ("CUSTOM_PHYSNET_A", "CUSTOM_PHYSNET_B")
        for trait in (*self.networks, self.KIND):
            self.admin_api.placement("PUT", f"/traits/{trait}")
        for name in hosts:
            self.cloud.start_configured(name, self.policy, "shared")
        server = self.boot(base.GENERAL_2, host="h1").id
        self.random, counts = random.Random(3), collections.Counter()
        settings = settings_for(self.policy)
        for _ in range(self.ROUNDS):
            made = [link for host in hosts for link in self.links(host)]
            held = self.random.sample(made[:2], self.random.choice((1, 2)))
            asked = [self.random.choice((100, 600)) for _ in held]
            before = allocation(self.admin_api, server)
            ports = {
                link: {"resources": dict.fromkeys(self.RATES, rate)}
                for (link, _), rate in zip(held, asked, strict=True)
            }
            body = before | {"allocations": before["allocations"] | ports}
            path = f"/allocations/{server}"
            self.admin_api.placement("PUT", path, body)
            seen = read_snapshot(self.admin_api)
            request, _ = explain.request_of(seen, server=server)
            found = explain.explain(self.policy, seen, request, settings)
            admin = self.admin()
            for verdict in found.verdicts:
                host = verdict.view.host
                if host == "h1":
                    # Where it holds it still.
                    continue
                spec = objects.RequestSpec.get_by_instance_uuid(admin, server)
                spec.requested_resources = [
                    objects.RequestGroup(
                        requester_id=link,
                        resources=dict.fromkeys(self.RATES, rate),
                        required_traits={network, self.KIND},
                    )
                    for (link, network), rate in zip(held, asked, strict=True)
                ]
                spec.request_level_params = objects.RequestLevelParams()
                taken = self.takes(admin, spec, host)
                self.assertEqual(taken, verdict.accepted, (host, ports, found))
                counts[taken] += 1
            now = allocation(self.admin_api, server)
            body = now | {"allocations": before["allocations"]}
            self.admin_api.placement("PUT", path, body)
            for link, _ in made:
                self.admin_api.placement("DELETE", f"/resource_providers/{link}")
        self.assertGreater(min(counts[True], counts[False]), 1, counts)

    def links(self, host):
        """Yield two new providers of a host's links, each with its network."""
        (root,) = (
            node.uuid for node in nova_database.compute_nodes([]) if node.host == host
        )
        for _ in range(2):
            link = str(uuid.uuid4())
            body = {"name": link, "uuid": link, "parent_provider_uuid": root}
            self.admin_api.placement("POST", "/resource_providers", body)
            total = 2000 if host == "h1" else self.random.choice((500, 700, 1000))
            body = {
                "resource_provider_generation": 0,
                "inventories": {name: {"total": total} for name in self.RATES},
            }
            path = f"/resource_providers/{link}"
            self.admin_api.placement("PUT", f"{path}/inventories", body)
            network = self.random.choice(self.networks)
            body = {
                "resource_provider_generation": 1,
                "traits": [network, self.KIND],
            }
            self.admin_api.placement("PUT", f"{path}/traits", body)
            yield link, network
