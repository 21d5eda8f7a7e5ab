# SPDX-License-Identifier: Apache-2.0
"""Nova's database as a controller has it: files, and a process that reads them."""

import json
import pathlib
import subprocess
import sys
from importlib import metadata

from nova_perfvm.known_bugs import releases
from tests.directory import DirectoryCase

ROOT = pathlib.Path(__file__).parents[2]

# A process of its own, as Nova keeps its configuration in one place.
FILL = """
import sys
from nova import config, context, objects
from nova.db import migration
config.parse_args(["fill"], default_config_files=[sys.argv[1]])
migration.db_sync(database="api")
migration.db_sync(database="main")
objects.register_all()
from tests.unit.scheduler import states
admin = context.get_admin_context()
for name, uuid, path in (
    ("cell0", objects.CellMapping.CELL0_UUID, "sqlite:////no/where"),
    ("cell1", states.uuidsentinel.cell1, config.CONF.database.connection),
):
    objects.CellMapping(
        admin, uuid=uuid, name=name, transport_url="none:///",
        database_connection=path, disabled=False,
    ).create()
topology = states.numa_topology(mempages=[(4, 1000, 7, 10)])
topology.cells[0].pin_cpus({0, 1})
objects.ComputeNode(
    admin, uuid=sys.argv[2], host="hp1", hypervisor_hostname="hp1", vcpus=40,
    memory_mb=1, local_gb=1, vcpus_used=2, memory_mb_used=0, local_gb_used=0,
    hypervisor_type="QEMU", hypervisor_version=1, cpu_info="",
    stats={"num_instances": "1"}, numa_topology=topology._to_json(),
    pci_device_pools=objects.PciDevicePoolList(objects=[
        objects.PciDevicePool.from_dict(
            {"vendor_id": "10de", "product_id": "1db4", "numa_node": 1, "count": 2}
        )
    ]),
).create()
objects.Service(admin, host="hp1", binary="nova-compute").create()
"""
READ = """
import sys
from nova_perfvm.cloud import nova_database
from nova_perfvm.facts import snapshot
taken = snapshot.Snapshot(
    "now", hosts=(snapshot.ComputeHost("hp1", "hp1", sys.argv[2], "s"),)
)
try:
    nova_database.configure(sys.argv[1])
    nodes = nova_database.compute_nodes([])
    versions = nova_database.service_versions([])
    devices = nova_database.server_devices([])
    taken = nova_database.with_cells(taken, nodes, versions, devices)
    print(snapshot.dumps(taken))
except nova_database.NovaDBError as exc:
    sys.exit(str(exc))
"""
IDS = {"vendor_id": "10de", "product_id": "1db4"}
UUID = "b5e2f0b4-8a0c-4b7a-9a0a-222222222222"


class TestController(DirectoryCase):
    def setUp(self):
        super().setUp()
        self.conf = self.directory / "nova.conf"

    def write(self, **databases):
        lines = [
            f"[{group}]\nconnection = sqlite:///{self.directory / name}\n"
            for group, name in databases.items()
        ]
        self.conf.write_text("".join(lines))

    def run_process(self, code):
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, str(self.conf), UUID],
            capture_output=True,
            check=False,
            cwd=ROOT,
            text=True,
        )

    def test_what_a_compute_reported(self):
        self.write(api_database="api.db", database="main.db")
        with self.conf.open("a") as file:
            file.write(f"[pci]\nalias = {json.dumps(IDS | {'name': 'gpu'})}\n")
        filled = self.run_process(FILL)
        self.assertEqual(0, filled.returncode, filled.stderr)
        done = self.run_process(READ)
        self.assertEqual(0, done.returncode, done.stderr)
        found = json.loads(done.stdout)
        asked = {"name": "gpu", "count": 1, "specs": [IDS]}
        self.assertEqual({"gpu": asked}, found["pci_aliases"])
        (host,) = found["hosts"]
        self.assertEqual([{"count": 2, "node": 1, "tags": IDS}], host["pci_pools"])
        self.assertEqual(
            ("nova database", 2, 1),
            (host["cells_source"], host["vcpus_used"], host["num_instances"]),
        )
        self.assertEqual(["0-1", ""], [cell["pinned_cpus"] for cell in host["cells"]])
        self.assertEqual(
            [{"size_kb": 4, "total": 990, "used": 7}], host["cells"][0]["mempages"]
        )
        installed = releases.Release.parse(metadata.version("nova"))
        told = releases.of_service(host["service_version"])
        self.assertEqual(installed.major, told.major)

    def test_aliases_that_nova_would_not_take(self):
        self.write(api_database="api.db", database="main.db")
        self.assertEqual(0, self.run_process(FILL).returncode)
        with self.conf.open("a") as file:
            file.write('[pci]\nalias = {"name": "gpu"}\n')
        done = self.run_process(READ)
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertIn("[pci]alias of nova.conf: ", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_files_that_will_not_do(self):
        for text, words in (
            ("garbage\n", "cannot be used"),
            ("[DEFAULT]\n", "no [api_database]connection"),
            ("[api_database]\nconnection = sqlite://\n", "no such table"),
        ):
            self.conf.write_text(text)
            done = self.run_process(READ)
            self.assertEqual((1, ""), (done.returncode, done.stdout))
            (line,) = [s for s in done.stderr.splitlines() if words in s]
            self.assertNotIn("Traceback", done.stderr, line)
