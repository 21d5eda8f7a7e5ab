# SPDX-License-Identifier: Apache-2.0
"""Generated configurations, loaded by the real nova-compute."""

import importlib
import json
import pathlib

import fixtures
from nova import conf as nova_conf
from nova import context, exception
from nova.tests.fixtures.libvirt import VIR_CONNECT_LIST_DOMAINS_ACTIVE as ACTIVE
from oslo_config import cfg

from nova_perfvm.generate.hosts import HostRequest, generate, rendering
from nova_perfvm.policy import HostShape, loader
from tests.functional import base
from tests.hypervisor.topology import pretended_topology

SHAPES = ("2x20", "2x20x2", "2x22", "4x20")
TRAIT = "CUSTOM_PERFVM_HIGH_PERFORMANCE"


def topology_of(shape):
    return pretended_topology(HostShape.parse(shape), memory_gb=500)


def read_as_nova(path):
    """Return {(group or None, option): value} of a file, typed as Nova types it."""
    conf = cfg.ConfigOpts()
    for name in ("base", "compute", "libvirt"):
        importlib.import_module(f"nova.conf.{name}").register_opts(conf)
    conf(["--config-file", str(path)], project="nova")
    sections, section = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            option = line.split(" = ")[0]
            group = None if section == "DEFAULT" else section
            # An option that Nova does not know raises.
            values = conf if group is None else conf[group]
            sections[group, option] = getattr(values, option)
    return sections


class HostConfigTest(base.FunctionalTest):
    CLOUD = None

    def start_with(self, name, shape, policy, **requested):
        """Start a compute with the files that are generated for it."""
        config = generate(HostRequest(policy, topology_of(shape), **requested))
        options = self.load(config)
        self.cloud.start_host(
            name,
            shape,
            dedicated=options.get(("compute", "cpu_dedicated_set")),
            shared=options.get(("compute", "cpu_shared_set")),
            vcpu_pin_set=options.get((None, "vcpu_pin_set")),
        )
        return config

    def load(self, config):
        """Put a configuration where the next compute reads it."""
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for file, text in rendering.as_files(config).items():
            (directory / file).write_text(text)
        options = read_as_nova(directory / "nova.conf")
        for (group, option), value in options.items():
            # Each pretended host has its own, see HostSettings.
            if option not in {"cpu_dedicated_set", "cpu_shared_set", "vcpu_pin_set"}:
                nova_conf.CONF.set_override(option, value, group)
        # The directory has no other file that ends in .yaml.
        nova_conf.CONF.set_override(
            "provider_config_location", str(directory), "compute"
        )
        return options

    def inventories(self, host):
        return self.cloud._provider(host, "inventories")["inventories"]

    def totals(self, host):
        """Return how much PCPU, VCPU and slots a host has, as text."""
        found = self.inventories(host)
        wanted = ("PCPU", "VCPU", "CUSTOM_PERFVM_SLOT")
        return ",".join(str(found.get(name, {}).get("total", 0)) for name in wanted)

    def setUp(self):
        super().setUp()
        self.policy = self.policy_of()
        self.start_cloud(disable_fallback_pcpu_query=False)

    def policy_of(self, **changes):
        text = json.dumps(loader.load().as_document() | changes)
        return loader.parse(text)

    def policy_of_class(self, **changes):
        """Return the built-in policy with its pinned class changed."""
        classes = self.policy_of().as_document()["classes"]
        classes["high-performance"].update(changes)
        return self.policy_of(classes=classes)

    def test_what_is_promised_is_what_nova_offers(self):
        """PCPU, VCPU and slots of each mode, on hosts of each of SHAPES."""
        mixed = self.policy_of_class(exclusive="cell")
        units = self.policy_of(placement="units")
        for mode, policy, reserve, expected in (
            ("dedicated", self.policy, 0, "40,0,2 40,0,2 44,0,2 80,0,2"),
            ("dedicated", self.policy, 2, "36,0,0 36,0,0 40,0,2 72,0,0"),
            ("shared", self.policy, 1, "0,38,0 0,76,0 0,42,0 0,76,0"),
            ("mixed", mixed, 0, "20,20,1 20,40,1 22,22,1 60,20,2"),
            ("elastic", units, 0, "0,40,0 0,40,0 0,44,0 0,80,0"),
            ("elastic", units, 2, "0,36,0 0,36,0 0,40,0 0,72,0"),
        ):
            for shape, totals in zip(SHAPES, expected.split(), strict=True):
                name = f"{mode}-{reserve}-{shape}"
                config = self.start_with(
                    name, shape, policy, mode=mode, reserve=reserve
                )
                self.assertEqual(totals, self.totals(name), name)
                found = self.inventories(name)
                if config.slots and "CUSTOM_PERFVM_SLOT" in found:
                    slot = found["CUSTOM_PERFVM_SLOT"]
                    told = slot["total"], slot["max_unit"], slot["reserved"]
                    self.assertEqual((config.slots, 1, 0), told)
                has_slots = not totals.endswith(",0")
                self.assertEqual(has_slots, TRAIT in self.cloud.traits(name), name)
                nodes = HostShape.parse(shape).cells
                self.assertEqual(4096 * nodes, found["MEMORY_MB"]["reserved"])

        # What was promised is what a VM gets: a core for each vCPU.
        guest = self.assert_high_performance(self.boot(host="dedicated-0-2x20x2"))
        self.assertEqual(set(), {cpu for cpu in guest.pins if cpu % 2})

    def test_disks_and_huge_pages(self):
        disk = {"source": "volume", "read_iops": 5000, "write_iops": 1000}
        policy = self.policy_of_class(mem_page_size="1GB", disk=disk)

        iops = {"read_iops": 12000, "write_iops": 4000}
        self.start_with("host1", "2x20", policy, mode="dedicated", **iops)

        found = self.inventories("host1")
        for name, total in iops.items():
            offer = found[f"CUSTOM_PERFVM_{name.upper()}"]
            self.assertEqual((total, total), (offer["total"], offer["max_unit"]))

    def test_a_host_changes_its_mode(self):
        """Slots go with provider.yaml, the trait has to be taken off."""
        self.start_with("host1", "2x20", self.policy, mode="dedicated")

        config = generate(HostRequest(self.policy, topology_of("2x20"), mode="shared"))
        self.load(config)
        self.cloud.restart_host("host1", dedicated=None, shared="0-39")

        self.assertEqual("0,40,0", self.totals("host1"))
        self.assertIn(TRAIT, self.cloud.traits("host1"))
        said = " ".join(config.notes)
        self.assertIn(f"take the trait {TRAIT} off", said)

    def test_a_server_deleted_while_its_host_is_cut_off(self):
        """Nova gives its CPUs away while the guest runs, until it looks."""
        self.start_with("host1", "2x20", self.policy, mode="dedicated")
        first, second = self.boot(), self.boot()
        self.cloud.fail_host("host1")
        self.servers.delete(first)
        self.assertEqual(20, self.cloud.usages("host1")["PCPU"])
        guests = self.cloud._connections["host1"]
        self.assertEqual(2, len(guests.listAllDomains(ACTIVE)))

        compute = self.cloud._services.computes["host1"].manager
        compute._cleanup_running_deleted_instances(context.get_admin_context())

        (left,) = guests.listAllDomains(ACTIVE)
        self.assertEqual(second.id, left.UUIDString())

    def test_a_vm_in_the_way_of_a_mode(self):
        """Why a host is drained first."""
        # General flavors forbid the trait, which has to exist for that.
        self.start_with("hp1", "2x20", self.policy, mode="dedicated")
        self.start_with("host1", "2x20", self.policy, mode="shared")
        self.boot(base.GENERAL_2, name="web", host="host1")

        # The pretended host's own CONF does not cover this check of the driver.
        nova_conf.CONF.set_override("cpu_dedicated_set", "0-39", "compute")
        refused = self.assertRaises(
            exception.InvalidConfiguration,
            self.cloud.restart_host,
            "host1",
            dedicated="0-39",
            shared=None,
        )
        self.assertIn("has unpinned instances", str(refused))
