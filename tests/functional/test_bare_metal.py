# SPDX-License-Identifier: Apache-2.0
"""Nodes of Ironic beside hosts of VMs: Nova's own driver, on a pretended Ironic."""

import types
import uuid

import fixtures
from nova.compute import power_state
from openstack.baremetal.v1.node import Node

from tests.functional import base, client
from tests.functional.glance import GlanceFixture

BARE_METAL = {
    "resources:CUSTOM_BAREMETAL_GOLD": "1",
    "resources:VCPU": "0",
    "resources:MEMORY_MB": "0",
    "resources:DISK_GB": "0",
}
DRIVER = "nova.virt.ironic.driver.IronicDriver"


class Ironic:
    """What the driver asks of Ironic: nodes, and who has them."""

    def __init__(self, number):
        self.known = [
            Node(
                id=str(uuid.uuid4()),
                resource_class="baremetal-gold",
                power_state="power off",
                provision_state="available",
                properties={"cpus": 40, "memory_mb": 1, "cpu_arch": "x86_64"},
                traits=[],
            )
            for _ in range(number)
        ]

    def nodes(self, instance_id=None, **_):
        return [n for n in self.known if instance_id in {None, n.instance_id}]

    def update_node(self, node, instance_id=None, **_):
        self.get_node(node.id).instance_id = instance_id

    def get_node(self, node, **_):
        return next(n for n in self.known if n.id == node)


class TestBareMetal(client.ClientMixin, base.FunctionalTest):
    PLACEMENT = "slots"

    def setUp(self):
        super().setUp()
        self.glance = self.useFixture(GlanceFixture())
        self.cloud.start_configured("hp1", self.policy, "dedicated")

    def start_nodes(self, number):
        """Start a nova-compute of so many nodes; it spawns nothing."""
        ironic = Ironic(number)
        running = types.SimpleNamespace(state=power_state.RUNNING, internal_id=None)
        for name, value in {
            "ironic_connection": ironic,
            "get_info": lambda *_, **__: running,
            "get_volume_connector": lambda *_: {},
            "prepare_networks_before_block_device_mapping": lambda *_: None,
            "network_binding_host_id": lambda *_: "ironic1",
            "plug_vifs": lambda *_: None,
            "spawn": lambda *_, **__: None,
        }.items():
            self.useFixture(fixtures.MonkeyPatch(f"{DRIVER}.{name}", value))
        services = self.cloud._services
        services.flags(compute_driver="ironic.IronicDriver")
        services.start_service("compute", host="ironic1")
        services.flags(compute_driver="libvirt.LibvirtDriver")

    def seen(self):
        """Return what each command that looks at all hosts prints, and says."""
        for command in (
            *("audit", "survey", "capacity show", "host list", "preflight"),
            *(f"explain --flavor {base.HP_64}", f"explain --flavor {base.GENERAL_2}"),
            *("plan drain hp1", "plan defragment --budget 1", "known-bugs --to 34"),
            *("plan what-if --remove hp1", "policy check"),
        ):
            status, printed, said = self.run_command(*command.split())
            yield command, (status, printed, said)

    def test_they_are_left_alone(self):
        server = self.boot()
        before = dict(self.seen())
        self.start_nodes(3)
        self.cloud.create_flavor("bm", 40, 1024, 10, BARE_METAL)
        metal = self.boot("bm")
        self.assertEqual("ironic1", metal.host)
        lines = self.cloud.log.lines(metal.id)
        self.assertEqual([], [line for line in lines if "PerfVMFilter" in line])
        for command, (status, printed, said) in self.seen():
            told = "left alone: 3 bare-metal nodes of Ironic\n"
            self.assertIn(told, said, command)
            self.assertEqual(before[command], (status, printed, said.replace(told, "")))
        self.assertEqual("hp1", self.servers.show(server).host)
