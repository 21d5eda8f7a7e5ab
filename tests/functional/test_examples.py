# SPDX-License-Identifier: Apache-2.0
"""The example policies: synced, booted and explained on a real Nova."""

import pathlib
from xml.etree import ElementTree as ET

import fixtures

from nova_perfvm.findings import Level
from nova_perfvm.generate.flavors import generate_image_properties
from nova_perfvm.measure.checks.host.declared_keys import differences
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.policy import loader
from tests.functional import base, client

EXAMPLES = pathlib.Path(__file__).parents[2] / "etc/nova_perfvm/examples"

# With declared sockets a guest has one thread a core, if none are declared.
TOPOLOGY = ("guest_topology.sockets", "guest_topology.threads")


class ExamplesTest(client.ClientMixin, base.FunctionalTest):
    CLOUD = None
    FLAVORS = ()

    def look(self, name, declared, **requested):
        """Sync the flavors, boot a VM of the pinned class, and explain another.

        :param declared: keys of the class that the XML has to show
        :param requested: members of HostRequest
        """
        path = str(EXAMPLES / f"{name}.yaml")
        self.policy = loader.load(path)
        (vm_class,) = self.policy.pinned_classes
        self.start_cloud(policy_file=path)
        self.cloud.start_configured("h1", self.policy, "dedicated", **requested)
        sync = ("flavor", "sync", "--yes", "--policy", path)
        self.assert_command(0, "", *sync)
        flavor = vm_class.flavor_names[0]
        api = self.cloud.api
        (found,) = (f["id"] for f in api.get_flavors() if f["name"] == flavor)
        properties = generate_image_properties(self.policy, class_name=vm_class.name)
        image = self.cloud.create_image(**properties)

        server = self.boot(found, image=image)

        domain = Domain(ET.fromstring(self.cloud.domains("h1")[server.id]))
        seen = dict(_named(differences(vm_class, domain)))
        self.assertEqual(dict.fromkeys(declared, Level.OK), seen)
        # By nova-scheduler itself, run dry: no API shows pages of memory.
        conf = self.useFixture(fixtures.TempDir()).join("nova.conf")
        pathlib.Path(conf).write_text("[DEFAULT]\n")
        configure = "nova_perfvm.cloud.nova_database.configure"
        self.useFixture(fixtures.MonkeyPatch(configure, lambda _: None))
        explain = ("explain", "--from-nova-db", conf, "--flavor", flavor)
        if vm_class.disk.source == "volume":
            explain += ("--boot-from-volume",)
        status, rows, stderr = self.run_json(*explain, "--policy", path)
        self.assertEqual(0, status, (rows, stderr))
        self.assertEqual(["accepted"], [row["Result"] for row in rows])

    def test_telco(self):
        keys = (*TOPOLOGY, "packed_ring")
        self.look("telco", keys, reserve=2)

    def test_database(self):
        keys = (*TOPOLOGY, "locked_memory", "disk.bus")
        self.look("database", keys)

    def test_realtime(self):
        keys = (*TOPOLOGY, "pmu", "realtime")
        self.look("realtime", keys)


def _named(found):
    for level, words in found:
        yield words.partition(":")[0], level
