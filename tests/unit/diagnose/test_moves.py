# SPDX-License-Identifier: Apache-2.0

import ast
import inspect
from dataclasses import replace

import testtools
from nova.api.openstack import common
from nova.compute import api

from nova_perfvm.diagnose import moves
from nova_perfvm.facts.demand import RequestError
from nova_perfvm.facts.requests import request_for
from nova_perfvm.facts.snapshot import Image
from tests.unit.facts.snapshot.clouds import Cloud

# The client's commands, and what nova-api calls for them.
ACTIONS = {
    "server migrate --live-migration": "live_migrate",
    "server migrate": "resize",
    "server reboot --hard": "_hard_reboot",
    "server rebuild --image": "rebuild",
    "server resize --flavor": "resize",
    "server resize confirm": "confirm_resize",
    "server restore": "restore",
    "server resume": "resume",
    "server shelve --offload": "shelve_offload",
    "server unpause": "unpause",
    "server unrescue": "unrescue",
    "server unshelve": "unshelve",
}

# What the flavor has beside its own keys.
FLAVOR_KEYS = {
    "PCI": {"hw:pci_numa_affinity_policy": "preferred"},
}


def allowed():
    """Return the statuses in which Nova takes each action."""
    found = {}
    for node in ast.walk(ast.parse(inspect.getsource(api.API))):
        if isinstance(node, ast.FunctionDef) and node.name in ACTIONS.values():
            (states,) = (
                keyword.value
                for decorator in node.decorator_list
                if ast.unparse(decorator).startswith("check_instance_state(")
                for keyword in decorator.keywords
                if keyword.arg == "vm_state"
            )
            states = eval(ast.unparse(states), vars(api))
            found[node.name] = {common.status_from_state(state) for state in states}
    return found


class MovesTest(testtools.TestCase):
    def test_an_image_that_was_changed_after_the_boot(self):
        """Nova compares an image with a flavor only for a new server or size."""
        cloud = Cloud()
        cloud.add_host("hp1")
        cloud.add_hp("a", "hp1")
        snapshot = cloud.snapshot()
        (server,) = snapshot.servers
        before = moves.request_of(snapshot, server)
        for name, properties in (
            ("page size", {"hw_mem_page_size": "large"}),
            ("multiqueue", {"hw_vif_multiqueue_enabled": "false"}),
            ("PCI", {"hw_pci_numa_affinity_policy": "required"}),
            ("two", {"hw_mem_page_size": "large", "hw_numa_nodes": "2"}),
        ):
            specs = {**server.extra_specs, **FLAVOR_KEYS.get(name, {})}
            image = Image("image", "i", properties)
            changed = replace(server, extra_specs=specs, image="image")
            today = replace(snapshot, images=(image,), servers=(changed,))
            self.assertRaises(
                RequestError, request_for, changed.embedded, image, devices=()
            )
            request = moves.request_of(today, changed)
            self.assertEqual(before.demand, request.demand)
            self.assertEqual(before.facts.cells, request.facts.cells)

    def test_nova_takes_the_first_command_in_each_status(self):
        statuses = allowed()
        for status in ("ACTIVE", "SHUTOFF", *moves._FIRST):
            for commands in (
                moves.migrate("ID", status),
                moves.resize("ID", status, "F"),
                moves.rebuild("ID", status),
            ):
                if status == "SHELVED_OFFLOADED" and "server migrate" in commands:
                    # It is on no host.
                    continue
                first = commands.splitlines()[0]
                named = max((name for name in ACTIONS if name in first), key=len)
                self.assertIn(status, statuses[ACTIONS[named]], commands)

    def test_what_nova_migrates_and_resizes_as_it_is(self):
        statuses = allowed()
        self.assertEqual(statuses["resize"], moves._READY)
        every = {common.status_from_state(state) for state in common._STATE_MAP}
        known = moves._READY | moves._FIRST.keys()
        self.assertEqual({"BUILD", "DELETED"}, every - known)

    def test_commands(self):
        confirm = "openstack server resize confirm i"
        migrate = f"openstack server migrate i --wait\n{confirm}"
        look = "openstack server show -f value -c status i"
        until = f"while {look} | grep -qx {{}}; do sleep 2; done"
        live = "openstack --os-compute-api-version 2.25 server migrate --live-migration"
        for status, commands in (
            ("SHUTOFF", [migrate]),
            (
                "SHELVED",
                [
                    "openstack server unshelve i",
                    until.format("SHELVED"),
                    "openstack server shelve --offload i",
                ],
            ),
            (
                "RESCUE",
                ["openstack server unrescue i", until.format("RESCUE"), migrate],
            ),
            ("PAUSED", [f"{live} i"]),
        ):
            self.assertEqual("\n".join(commands), moves.migrate("i", status))
        self.assertEqual(
            f"openstack server unpause i\n{until.format('PAUSED')}\n"
            f"openstack server resize --flavor f i --wait\n{confirm}",
            moves.resize("i", "PAUSED", "f"),
        )

    def test_a_status_lasts_until_its_command_is_done(self):
        """Else the loop would end, and Nova refuse what comes next."""
        for state, statuses in common._STATE_MAP.items():
            status = statuses["default"]
            tasks = {
                "ERROR": ["rebooting_hard", "reboot_started_hard"],
                "PAUSED": ["unpausing"],
                "RESCUE": ["unrescuing"],
                "SHELVED": ["unshelving", "powering-on"],
                "SHELVED_OFFLOADED": ["unshelving", "spawning"],
                "SOFT_DELETED": ["restoring"],
                "SUSPENDED": ["resuming"],
            }.get(status, [])
            for task in tasks:
                self.assertEqual(status, common.status_from_state(state, task))

    def test_words(self):
        cloud = Cloud()
        cloud.add_host("hp1")
        for name, status, task in (
            ("a", "ACTIVE", None),
            ("b", "RESCUE", None),
            ("c", "SHUTOFF", None),
            ("d", "SHELVED", None),
            ("e", "PAUSED", "unpausing"),
        ):
            cloud.add_hp(name, "hp1", status=status, task=task)
        servers = tuple(cloud.servers.values())
        self.assertEqual(
            "migrate a (i-a), b (i-b) in RESCUE, c (i-c), d (i-d) in SHELVED, "
            "e (i-e) in unpausing",
            moves.describe(servers),
        )
        ready = [server.name for server in servers if moves.ready(server)]
        self.assertEqual(["a", "c", "d"], ready)
