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

from nova_perfvm.generate.hosts import (
    HostRequest,
    generate,
    rendering,
)
from nova_perfvm.policy import HostShape, loader
from nova_perfvm.sandbox.topology import pretended_topology
from tests.functional import base

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
        wanted = ("PCPU", "VCPU", "CUSTOM_PERFVM_SLOT")
        found = self.inventories(host)
        return tuple(found[name]["total"] if name in found else 0 for name in wanted)

    def setUp(self):
        super().setUp()
        self.policy = self.policy_of()

    def policy_of(self, **changes):
        text = json.dumps(loader.load().as_document() | changes)
        return loader.parse(text)

    def policy_of_class(self, **changes):
        """Return the built-in policy with its pinned class changed."""
        classes = self.policy_of().as_document()["classes"]
        classes["high-performance"].update(changes)
        return self.policy_of(classes=classes)

    def assert_promised(self, expected, mode, **requested):
        """Start a host of each shape; compare PCPU, VCPU and slots.

        :param expected: those three totals for each of SHAPES
        """
        for shape, totals in zip(SHAPES, expected, strict=True):
            name = f"{mode}-{shape}"
            config = self.start_with(name, shape, self.policy, mode=mode, **requested)
            self.assertEqual(totals, self.totals(name), shape)
            slots = totals[2]
            if slots:
                self.assertEqual(slots, config.slots)
                slot = self.inventories(name)["CUSTOM_PERFVM_SLOT"]
                self.assertEqual((1, 0), (slot["max_unit"], slot["reserved"]))
            self.assertEqual(slots > 0, TRAIT in self.cloud.traits(name))
            reserved = self.inventories(name)["MEMORY_MB"]["reserved"]
            nodes = HostShape.parse(shape).cells
            self.assertEqual(4096 * nodes, reserved)

    def test_dedicated(self):
        self.start_cloud()

        self.assert_promised(
            [(40, 0, 2), (40, 0, 2), (44, 0, 2), (80, 0, 2)], "dedicated"
        )

        # What was promised is what a VM gets: a core for each vCPU.
        guest = self.assert_high_performance(self.boot(host="dedicated-2x20x2"))
        self.assertEqual(set(), {cpu for cpu in guest.pins if cpu % 2})

    def test_a_configured_host_knows_its_siblings(self):
        """Here CPUs 0 and 1 share a core; a VM owns 20 cores nevertheless."""
        self.start_cloud()
        self.cloud.start_configured("host1", self.policy, "dedicated", "2x20x2")

        self.assertEqual((40, 0, 2), self.totals("host1"))
        guest = self.assert_high_performance(self.boot())
        self.assertEqual(set(), {cpu for cpu in guest.pins if cpu % 2})

    def test_dedicated_with_housekeeping(self):
        self.start_cloud()

        self.assert_promised(
            [(36, 0, 0), (36, 0, 0), (40, 0, 2), (72, 0, 0)], "dedicated", reserve=2
        )

    def test_shared(self):
        self.start_cloud()

        self.assert_promised(
            [(0, 38, 0), (0, 76, 0), (0, 42, 0), (0, 76, 0)], "shared", reserve=1
        )

    def test_mixed(self):
        self.policy = self.policy_of_class(exclusive="cell")
        self.start_cloud()

        self.assert_promised(
            [(20, 20, 1), (20, 40, 1), (22, 22, 1), (60, 20, 2)], "mixed"
        )

    def test_elastic(self):
        self.policy = self.policy_of(placement="units")
        self.start_cloud(disable_fallback_pcpu_query=False)

        self.assert_promised(
            [(0, 40, 0), (0, 40, 0), (0, 44, 0), (0, 80, 0)], "elastic"
        )

    def test_elastic_with_housekeeping(self):
        self.policy = self.policy_of(placement="units")
        self.start_cloud(disable_fallback_pcpu_query=False)

        self.assert_promised(
            [(0, 36, 0), (0, 36, 0), (0, 40, 0), (0, 72, 0)], "elastic", reserve=2
        )

    def test_disks_and_huge_pages(self):
        disk = {"source": "volume", "read_iops": 5000, "write_iops": 1000}
        policy = self.policy_of_class(mem_page_size="1GB", disk=disk)
        self.start_cloud()

        self.start_with(
            "host1",
            "2x20",
            policy,
            mode="dedicated",
            read_iops=12000,
            write_iops=4000,
        )

        found = self.inventories("host1")
        for name, total in (
            ("CUSTOM_PERFVM_READ_IOPS", 12000),
            ("CUSTOM_PERFVM_WRITE_IOPS", 4000),
        ):
            self.assertEqual(
                (total, total), (found[name]["total"], found[name]["max_unit"])
            )

    def test_a_host_changes_its_mode(self):
        """Slots go with provider.yaml, the trait has to be taken off."""
        policy = self.policy_of()
        self.start_cloud()
        self.start_with("host1", "2x20", policy, mode="dedicated")

        config = generate(HostRequest(policy, topology_of("2x20"), mode="shared"))
        self.load(config)
        self.cloud.restart_host("host1", dedicated=None, shared="0-39")

        self.assertEqual((0, 40, 0), self.totals("host1"))
        self.assertIn(TRAIT, self.cloud.traits("host1"))
        said = " ".join(config.notes)
        self.assertIn(f"take the trait {TRAIT} off", said)

    def test_a_server_deleted_while_its_host_is_cut_off(self):
        """Nova gives its CPUs away while the guest runs, until it looks."""
        self.start_cloud()
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
        self.start_cloud()
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
