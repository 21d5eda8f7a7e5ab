# SPDX-License-Identifier: Apache-2.0
"""A sandbox for each class of tests, and what they do in it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import testtools
from testtools.content import text_content

from tests.processes import content, ports, waiting
from tests.processes.layout import default_directory
from tests.processes.sandbox import Sandbox

HP = "hp.20c.64g"
GENERAL = "g.2c.4g"

# That of the sandbox of `make sandbox`: it takes minutes to make.
ENVIRONMENT = os.environ.get("PERFVM_SANDBOX_ENVIRONMENT") or (
    default_directory() / "venv"
)
# The sandbox's own, wherever it runs.
PROGRAM = (
    *("env", f"PYTHONPATH={Path(__file__).parents[2]}"),
    *(sys.executable, "-m", "tests.sandbox"),
)
# On a starved machine everything takes its time.
SECONDS = 240

_BEGAN = time.monotonic()


def tell(text):
    """Show progress past stestr, which shows nothing before a test ends."""
    sys.__stderr__.write(f"[{time.monotonic() - _BEGAN:6.1f} s] {text}\n")


class SandboxTest(testtools.TestCase):
    """Tests that share a sandbox, and leave no server behind.

    A sandbox that is up in the directory PERFVM_TEST_SANDBOX is used, and left as it
    is, by the tests that want one like it.

    :cvar HOSTS: the pretended hosts
    :cvar OPTIONS: what else is asked of the sandbox
    """

    HOSTS = "1xdedicated:2x20,1xshared:2x20"
    OPTIONS = {}  # noqa: RUF012

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sandbox = cls._found() or cls._started()
        cls.compute = cls.sandbox.connect().compute

    @classmethod
    def _found(cls):
        """Return the sandbox that is up, if it is like this."""
        directory = os.environ.get("PERFVM_TEST_SANDBOX")
        if not directory or cls.OPTIONS:
            return None
        sandbox = Sandbox(directory, environment=ENVIRONMENT, tell=tell)
        return sandbox if sandbox.settings.hosts == cls.HOSTS else None

    @classmethod
    def _started(cls):
        directory = tempfile.mkdtemp(prefix="perfvm-")
        cls.addClassCleanup(shutil.rmtree, directory, ignore_errors=True)
        sandbox = Sandbox(Path(directory) / "state", environment=ENVIRONMENT, tell=tell)
        sandbox.up(cls.HOSTS, **cls.OPTIONS)
        cls.addClassCleanup(cls.stop, sandbox)
        return sandbox

    @staticmethod
    def stop(sandbox):
        """Stop a sandbox, and look that nothing of it still runs."""
        sandbox.down()
        listening = ports.taken(sandbox.settings.ports.values())
        if left := [*sandbox.processes.leftovers(), *listening]:
            raise AssertionError(f"{left} are still there")

    def setUp(self):
        super().setUp()
        self.servers = []
        self.addOnException(self._show_logs)
        self.addCleanup(self.delete_all)

    # Commands

    def command(self, *arguments, check=True):
        """Run a program of OpenStack's environment as openrc has it."""
        result = subprocess.run(
            arguments,
            check=False,
            capture_output=True,
            text=True,
            env=self.client_environment(),
        )
        if check:
            self.assertEqual(0, result.returncode, result.stdout + result.stderr)
        return result

    def client_environment(self):
        """Return the environment of a shell that has evaluated openrc."""
        exports = self.sandbox.exports()
        path = f"{exports.pop('PATH')}:{os.environ['PATH']}"
        return self.sandbox.processes.environment({"PATH": path}) | exports

    def openstack(self, *arguments):
        """Run the openstack client; return what it prints as JSON."""
        return json.loads(self.command("openstack", *arguments, "-f", "json").stdout)

    def run_sandbox(self, command):
        """Run a command of the sandbox's program; return what has ended."""
        where = ("--directory", str(self.sandbox.layout.directory))
        where += ("--environment", str(self.sandbox.environment.directory))
        return self.command(*PROGRAM, command, *where, check=False)

    # Servers

    def create(self, flavor, host=None):
        """Ask for a server; return its id."""
        body = self.request(flavor) | ({} if host is None else {"host": host})
        response = self.compute.post(
            "/servers", json={"server": body}, microversion="2.86"
        )
        self.assertEqual(202, response.status_code, response.text)
        self.servers.append(response.json()["server"]["id"])
        return self.servers[-1]

    def request(self, flavor):
        """Return what Nova is asked for."""
        return {
            "name": flavor,
            "flavorRef": self.compute.find_flavor(flavor).id,
            "imageRef": self.sandbox.connect().image.find_image(content.IMAGE).id,
            "networks": "none",
        }

    def show(self, server):
        response = self.compute.get(f"/servers/{server}", microversion="2.96")
        self.assertEqual(200, response.status_code, response.text)
        return response.json()["server"]

    def settled(self, server):
        """Return a server that is ACTIVE or in ERROR."""
        waiting.until(
            lambda: self.show(server)["status"] in {"ACTIVE", "ERROR"},
            f"server {server}",
            SECONDS,
        )
        return self.show(server)

    def boot(self, flavor, host=None):
        """Boot a server that has to become ACTIVE; return it."""
        server = self.settled(self.create(flavor, host))
        self.assertEqual("ACTIVE", server["status"], server.get("fault"))
        return server

    def boot_refused(self, flavor, host=None):
        """Boot a server for which there has to be no host."""
        server = self.settled(self.create(flavor, host))
        self.assertEqual("ERROR", server["status"], host_of(server))
        self.assertIn("No valid host was found", server["fault"]["message"])

    def delete_all(self):
        for server in self.servers:
            self.compute.delete(f"/servers/{server}")
        waiting.until(
            lambda: (
                not any(
                    self.compute.get(f"/servers/{server}").status_code == 200
                    for server in self.servers
                )
            ),
            "servers to be deleted",
            SECONDS,
        )
        self.servers.clear()

    def pins(self, server):
        """Return {node of the host: CPUs that the server owns on it}."""
        path = f"/servers/{server['id']}/topology"
        nodes = self.compute.get(path, microversion="2.78").json()["nodes"]
        return {
            node["host_node"]: set(map(int, node["cpu_pinning"].values()))
            for node in nodes
        }

    def domain(self, server):
        """Return the domain XML of a server's guest."""
        name = server["OS-EXT-SRV-ATTR:instance_name"]
        path = self.sandbox.layout.domains(host_of(server)) / f"{name}.xml"
        return ET.fromstring(path.read_text())

    def assert_high_performance(self, server):
        """Judge where a server's vCPUs are; return the node and the CPUs."""
        ((node, cpus),) = self.pins(server).items()
        self.assertEqual(20, len(cpus))
        domain = self.domain(server)
        pinned = {int(pin.get("cpuset")) for pin in domain.findall("cputune/vcpupin")}
        self.assertEqual(cpus, pinned)
        memory = domain.find("numatune/memory")
        self.assertEqual(
            ("strict", str(node)), (memory.get("mode"), memory.get("nodeset"))
        )
        return node, cpus

    def await_report(self, binary, host):
        """Wait until a service that was started has reported."""
        before = self._report(binary, host)
        waiting.until(
            lambda: self._report(binary, host) != before,
            f"{binary} on {host} to report",
            SECONDS,
        )

    def _report(self, binary, host):
        path = f"/os-services?binary={binary}&host={host}"
        (service,) = self.compute.get(path).json()["services"]
        return service["updated_at"]

    def _show_logs(self, _exc_info):
        for path in sorted(self.sandbox.layout.logs.glob("nova-*")):
            self.addDetail(path.name, text_content(waiting.tail(path)))


def host_of(server):
    return server["OS-EXT-SRV-ATTR:host"]
