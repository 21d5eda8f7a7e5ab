# SPDX-License-Identifier: Apache-2.0
"""The playbook that takes hosts in, run on hosts of a sandbox."""

import os
import pathlib
import re
import subprocess
import sys

import fixtures
import yaml

from nova_perfvm.cloud.api import API
from nova_perfvm.generate.hosts import playbook
from tests import ansible
from tests.processes.computes import PREFIX
from tests.sandbox import base

REASON = "nova-perfvm: host playbook"
# A second provider.yaml of the same provider: nova-compute does not start with it.
SECOND = """\
meta: {schema_version: '1.0'}
providers: [{identification: {uuid: $COMPUTE_NODE}, traits: {additional: [CUSTOM_A]}}]
"""


def nameless(text):
    """Return a text without names and IDs of servers."""
    return re.sub(r"\S+ \([0-9a-f-]{36}\)", "SERVER", text)


class HostPlaybookMixin:
    """Runs it on hosts of the class's sandbox."""

    def print_playbook(self):
        """Print it, as every test does first."""
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
            *(*base.PROGRAM, "restart"),
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


class HostPlaybookMistakes(HostPlaybookMixin):
    """What is wrong, on a sandbox of slots."""

    def test_playbook_names_all_mistakes_before_anything_is_changed(self):
        self.print_playbook()
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
                "dedicated2": {"perfvm_mode": "elastic"},
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
            "dedicated2: elastic hosts need placement: units",
            "dedicated1: nova-compute is called with --config-file and does not read",
            "/etc/nova/nova.conf.d/perfvm.conf: add --config-dir /etc/nova/nova.conf.d",
            "nowhere: say by perfvm_mode what it is to be",
            f"{other} was not written by host config: name a file of its own",
            "nowhere: Nova has no nova-compute of nowhere",
        ):
            self.assertIn(words, said)
        self.assertEqual(before, self.state())
        self.assert_changed(set(), said)
