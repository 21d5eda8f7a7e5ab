# SPDX-License-Identifier: Apache-2.0
"""Hosts of a running cloud, taken in by the playbook that is printed for it."""

import os
import pathlib
import re
import subprocess
import sys

import fixtures
import yaml

from nova_perfvm.cloud.api import API
from nova_perfvm.generate.hosts import playbook
from nova_perfvm.sandbox.processes.computes import PREFIX
from tests import ansible, shown
from tests.sandbox import base
from tests.sandbox.base import GENERAL, HP

PAGE = "doc/source/admin/host-playbook.rst"
REASON = "nova-perfvm: host playbook"
# A second provider.yaml of the same provider: nova-compute does not start with it.
SECOND = """\
meta: {schema_version: '1.0'}
providers: [{identification: {uuid: $COMPUTE_NODE}, traits: {additional: [CUSTOM_A]}}]
"""


def nameless(text):
    """Return a text without names and IDs of servers."""
    return re.sub(r"\S+ \([0-9a-f-]{36}\)", "SERVER", text)


class HostPlaybookTest(base.SandboxTest):
    HOSTS = "2xshared:2x20,1xdedicated:2x20"

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.programs = self.directory / "bin"
        self.programs.mkdir()
        self.command("nova-perfvm", "host", "playbook", "--output-dir", self.directory)

    def play(self, hosts, *arguments, **variables):
        """Run the playbook; return its exit status, and what it has printed.

        :param hosts: {name: variables}, in their order
        :param variables: of all of them
        """
        layout = self.sandbox.layout
        restart = [
            *(self.sandbox.environment.program("nova-perfvm"), "sandbox", "restart"),
            *("--directory", str(layout.directory)),
            *("--environment", str(self.sandbox.environment.directory)),
        ]
        own = {
            name: {
                "perfvm_conf_file": f"{layout.host_etc(name)}/nova.conf",
                "perfvm_provider_file": str(self.provider(name)),
                "perfvm_restart_command": [*restart, PREFIX + name],
            }
            | more
            for name, more in hosts.items()
        }
        common = {
            "ansible_connection": "local",
            "perfvm_topology": "2x20",
            "perfvm_memory_gb": 500,
            "perfvm_nova_conf": [str(layout.etc / "nova/nova-compute.conf")],
            "perfvm_owner": str(os.getuid()),
            "perfvm_group": str(os.getgid()),
            # As the sandbox has written them.
            "perfvm_file_mode": "0644",
            "perfvm_validate": self.sandbox.environment.program("oslo-config-validator")
            + " --namespace nova.conf --input-file %s",
        }
        document = {"perfvm_hosts": {"vars": common | variables, "hosts": own}}
        (self.directory / "inventory.yml").write_text(
            yaml.safe_dump(document, sort_keys=False)
        )
        environment = self.client_environment()
        environment["PATH"] = f"{self.programs}:{environment['PATH']}"
        return ansible.run(
            self.directory,
            *("ansible-playbook", playbook.PLAYBOOK, *arguments),
            timeout_s=4 * base.SECONDS,
            environment=environment,
        )

    def provider(self, host):
        return self.sandbox.layout.host_etc(host) / "provider_config/provider.yaml"

    def services(self):
        """Return {host: (status, reason)} of the computes."""
        services = self.compute.get("/os-services?binary=nova-compute").json()
        return {
            service["host"]: (service["status"], service["disabled_reason"])
            for service in services["services"]
        }

    def state(self):
        """Return what there is to be changed: files, services, where servers are."""
        files = {
            path: (path.read_bytes(), path.stat().st_mtime)
            for path in (self.sandbox.layout.etc / "hosts").rglob("*")
            if path.is_file()
        }
        where = {server: base.host_of(self.show(server)) for server in self.servers}
        return files, self.services(), where

    def traits(self, host):
        api = API(self.sandbox.connect())
        path = f"/resource_providers?name={host}"
        (root,) = api.placement("GET", path, key="resource_providers")
        path = f"/resource_providers/{root['uuid']}/traits"
        return api.placement("GET", path, key="traits")

    def assert_changed(self, expected, said):
        found = dict(re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", said, re.MULTILINE))
        self.assertEqual(expected, {name for name, n in found.items() if n != "0"})

    def test_all_mistakes_are_named_before_anything_is_changed(self):
        other = self.directory / "other.conf"
        other.write_text("[DEFAULT]\nreserved_host_cpus = 2\n[compute]\n")
        before = self.state()
        # As on Debian; and sudo leaves nobody his environment.
        started = self.process("--config-file", "/etc/nova/nova.conf")
        self.program("systemctl", f"echo {started}")
        self.program(
            "sudo",
            'while [ "$1" != root ]; do shift; done; shift',
            'exec env -i PATH="$PATH" "$@"',
        )

        status, said = self.play(
            {
                "shared1": {
                    "perfvm_mode": "dedicated",
                    "perfvm_nova_conf": [str(other)],
                },
                "shared2": {"perfvm_mode": "elastic"},
                "dedicated1": {
                    "perfvm_mode": "dedicated",
                    "perfvm_restart_command": [],
                    "perfvm_conf_file": "/etc/nova/nova.conf.d/perfvm.conf",
                },
                "nowhere": {"perfvm_conf_file": str(other)},
            },
            ansible_become=True,
        )

        self.assertEqual(2, status, said)
        for words in (
            f"shared1: take out what this mode does not have: {other}:reserved_host_",
            "shared2: elastic hosts need placement: units",
            "dedicated1: nova-compute is called with --config-file and does not read",
            "/etc/nova/nova.conf.d/perfvm.conf: add --config-dir /etc/nova/nova.conf.d",
            "nowhere: say by perfvm_mode what it is to be",
            f"{other} was not written by host config: name a file of its own",
            "nowhere: Nova has no nova-compute of nowhere",
        ):
            self.assertIn(words, said)
        self.assertEqual(before, self.state())
        self.assert_changed(set(), said)

    def process(self, *arguments):
        """Start a process that does nothing; return its pid."""
        waits = [sys.executable, "-c", "import time; time.sleep(3600)"]
        started = subprocess.Popen([*waits, *arguments])
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        return started.pid

    def program(self, name, *lines):
        """Put a program before those of the system."""
        path = self.programs / name
        path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        path.chmod(0o755)

    def test_hosts_are_taken_in_one_after_the_other(self):
        server = self.boot(GENERAL, host="shared1")["id"]
        hosts = {
            # Nobody is on it; its slots and their trait go.
            "dedicated1": {"perfvm_mode": "shared"},
            # Its server can go to the one before, at first nowhere.
            "shared1": {"perfvm_mode": "dedicated"},
            "shared2": {"perfvm_mode": "shared"},
        }
        nowhere = ["--exclude", "dedicated1", "--exclude", "shared2"]
        stuck = hosts["shared1"] | {"perfvm_drain_options": nowhere}
        before = self.state()

        status, said = self.play(hosts, "--check", "--limit", "shared1")
        self.assertEqual(0, status, said)
        self.assertRegex(said, f"server migrate --live-migration .* {server}")
        self.assertIn("to be dedicated, 2 slot(s): drain it, write ", said)
        self.assertEqual(before, self.state())

        # It ends at the first host that cannot be emptied.
        status, said = self.play(hosts | {"shared1": stuck})
        self.assertEqual(2, status, said)
        (documented,) = re.findall(r"\[ERROR\]: .*", (shown.ROOT / PAGE).read_text())
        self.assertIn(nameless(documented), nameless(said))
        self.assert_changed({"dedicated1", "shared1"}, said)
        self.assertNotIn("[shared2]", said[said.index("PLAY [Take the hosts in") :])
        services = self.services()
        self.assertEqual(("disabled", REASON), services.pop("shared1"))
        self.assertEqual({("enabled", None)}, set(services.values()))
        self.assertEqual("shared1", base.host_of(self.show(server)))
        self.assertNotIn("CUSTOM_PERFVM_HIGH_PERFORMANCE", self.traits("dedicated1"))
        self.assertFalse(self.provider("dedicated1").exists())

        # The next run goes on; nova-compute does not start.
        second = self.provider("shared1").with_name("second.yaml")
        second.write_text(SECOND)
        broken = hosts["shared1"] | {"perfvm_wait_s": 20}
        status, said = self.play(hosts | {"shared1": broken}, "--limit", "shared1")
        self.assertEqual(2, status, said)
        self.assertIn("has not reported for 20 s since it was restarted", said)
        self.assertIn("See the log of nova-compute on the host", said)
        self.assertEqual(("disabled", REASON), self.services()["shared1"])
        self.assertNotEqual("shared1", base.host_of(self.show(server)))

        second.unlink()
        status, said = self.play(hosts, "--limit", "shared1")
        self.assertEqual(0, status, said)
        self.assert_changed({"shared1"}, said)
        self.assertEqual({("enabled", None)}, set(self.services().values()))
        # One that is there is no reason to drain it.
        vm = self.boot(HP, host="shared1")
        self.assert_high_performance(vm)

        settled = self.state()
        status, said = self.play(hosts, "--limit", "shared1")
        self.assertEqual(0, status, said)
        self.assert_changed(set(), said)
        self.assertEqual(settled, self.state())
