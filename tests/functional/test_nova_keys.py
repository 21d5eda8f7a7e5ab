# SPDX-License-Identifier: Apache-2.0
"""Keys of a class that are keys of Nova: the XML that a real Nova makes of each.

The check of hosts judges the same XML, with the keys declared and with others.
"""

import json
from xml.etree import ElementTree as ET

import fixtures
from nova.virt.libvirt import driver

from nova_perfvm.findings import Level
from nova_perfvm.generate.flavors import generate_flavors, generate_image_properties
from nova_perfvm.measure.checks.host.declared_keys import differences
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.policy import loader
from tests.functional import base

SOCKETS = {"sockets": "numa_nodes"}
SMT = {"smt": "threads"}
EMULATED = {"mode": "emulate", "bits": 46}
LOCKED = {"locked_memory": True, "mem_page_size": "small"}
TOPOLOGY = "cpu/topology"
SCSI = "devices/controller[@type='scsi']"
# (name, keys of the class, {path in the XML: attributes}); each VM has 4 vCPUs.
ROWS = (
    ("without", {}, {TOPOLOGY: {"sockets": "4", "cores": "1", "threads": "1"}}),
    (
        "one socket",
        {"guest_topology": SOCKETS},
        {TOPOLOGY: {"sockets": "1", "cores": "4", "threads": "1"}},
    ),
    (
        "a socket per node",
        {"guest_topology": SOCKETS, "numa_nodes": 2},
        {TOPOLOGY: {"sockets": "2", "cores": "2", "threads": "1"}},
    ),
    (
        "threads",
        {"guest_topology": SOCKETS | {"threads": 2}} | SMT,
        {TOPOLOGY: {"sockets": "1", "cores": "2", "threads": "2"}},
    ),
    ("locked", LOCKED, {"memoryBacking/locked": {}}),
    (
        "packed",
        {"packed_ring": True},
        {"devices/interface/driver": {"packed": "on", "queues": "4"}},
    ),
    ("no counters", {"pmu": False}, {"features/pmu": {"state": "off"}}),
    ("counters", {"pmu": True}, {"features/pmu": {"state": "on"}}),
    (
        "real time",
        {"realtime": {"mask": "^0"}},
        {
            "cputune/vcpusched": {"vcpus": "1-3", "scheduler": "fifo", "priority": "1"},
            "memoryBacking/locked": {},
            "memoryBacking/nosharepages": {},
        },
    ),
    (
        "wide addresses",
        {"maxphysaddr": EMULATED},
        {"cpu/maxphysaddr": {"mode": "emulate", "bits": "46"}},
    ),
    (
        "scsi",
        {"disk": {"source": "image", "bus": "scsi"}},
        {"devices/disk/target": {"bus": "scsi"}, SCSI: {"model": "virtio-scsi"}},
    ),
    (
        "own key",
        {"extra_specs": {"hw:watchdog_action": "reset"}},
        {"devices/watchdog": {"action": "reset"}},
    ),
)


class XMLTest(base.FunctionalTest):
    CLOUD = None
    FLAVORS = ()

    def setUp(self):
        super().setUp()
        document = loader.load().as_document()
        document |= {"placement": "none", "host_shape": ["2x40x2"]}
        general = document["classes"]["general"]
        document["classes"] = {"general": general} | {
            name.replace(" ", "-"): {
                "vcpus": 4,
                "cpu_policy": "dedicated",
                "vif_multiqueue": True,
                "flavors": {
                    "name": name,
                    "sizes": [{"vcpus": 4, "memory_gb": 2, "root_gb": 10}],
                },
            }
            | keys
            for name, keys, _ in ROWS
        }
        path = self.useFixture(fixtures.TempDir()).join("perfvm.yaml")
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(document, file)
        self.policy = loader.load(path)
        # The pretended libvirt is 8.0, and reports no trait of address spaces.
        self.useFixture(
            fixtures.MockPatchObject(driver, "MIN_LIBVIRT_MAXPHYSADDR", (8, 0, 0))
        )
        self.start_cloud(policy_file=path)
        self.cloud.start_host("h1", "2x40x2", dedicated="0-159")

    def test_each_key_is_in_the_xml(self):
        flavors = {f.name: f for f in generate_flavors(self.policy)}
        self.create_flavors(*(name for name, *_ in ROWS))
        without = None
        for name, keys, expected in ROWS:
            vm_class = self.policy.get_class(flavors[name].class_name)
            root = self.booted(name, vm_class)
            for place, attributes in expected.items():
                found = root.find(place)
                self.assertIsNotNone(found, place)
                seen = {key: found.get(key) for key in attributes}
                self.assertEqual(attributes, seen, place)
            domain = Domain(root)
            without = without or domain
            declares = bool(keys) and "extra_specs" not in keys
            right = {Level.OK} if declares else set()
            found = list(differences(vm_class, domain))
            self.assertEqual(right, {level for level, _ in found}, found)
            # One thread a core, which sockets imply, is what VMs without keys have.
            wrong = {Level.FAILURE} if declares else set()
            found = list(differences(vm_class, without))
            self.assertEqual(wrong, {level for level, _ in found} - {Level.OK}, found)

    def booted(self, flavor, vm_class):
        """Boot a server of an image of the class; return its XML."""
        properties = generate_image_properties(self.policy, class_name=vm_class.name)
        server = self.boot(flavor, image=self.cloud.create_image(**properties))
        root = ET.fromstring(self.cloud.domains("h1")[server.id])
        self.servers.delete(server)
        return root
