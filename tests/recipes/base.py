# SPDX-License-Identifier: Apache-2.0
"""Where the tools are, what is generated for them, and what Nova sees."""

import os
import pathlib
import shutil
import subprocess

from nova_perfvm.generate.hosts import deployers, generate
from tests.unit.generate.hosts import requests
from tests.unit.generate.hosts.test_deployers import CONFIGS, OptionsCase

# {variable: what it names}.
TOOLS = {
    "PERFVM_KOLLA": "a virtual environment with kolla-ansible",
    "PERFVM_CONFIG_TEMPLATE": "a checkout of openstack/ansible-config_template",
    "PERFVM_HELM": "the program helm",
    "PERFVM_OPENSTACK_HELM": "a checkout of openstack/openstack-helm",
    "PERFVM_RHOSO": "a directory with checkouts of nova-operator, openstack-operator "
    "and edpm-ansible of openstack-k8s-operators",
    "PERFVM_GRAFANA_SCHEMA": "a directory in which npm has installed "
    "@grafana/schema and typescript",
    "PERFVM_TERRAFORM": "the program terraform, or tofu",
}


class RecipeCase(OptionsCase):
    """A test of a tool.

    :cvar VARIABLE: names the tool
    """

    VARIABLE = ""

    def setUp(self):
        super().setUp()
        self.tool = self.named(self.VARIABLE)

    def named(self, variable):
        """Return the path that a variable names."""
        path = os.environ.get(variable)
        if not path:
            self.fail(f"{variable} is not set: it names {TOOLS[variable]}")
        return pathlib.Path(path).absolute()

    def write(self, name, text):
        (self.directory / name).write_text(text)

    def run_tool(self, *command):
        """Return what a command printed; one that fails fails the test."""
        # Tools have environments of their own.
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        ran = subprocess.run(
            [*map(str, command)],
            check=False,
            capture_output=True,
            cwd=self.directory,
            env=kept | {"ANSIBLE_CONFIG": str(self.directory / "ansible.cfg")},
            text=True,
        )
        self.assertEqual(0, ran.returncode, f"{command}\n{ran.stdout}\n{ran.stderr}")
        return ran.stdout

    def each_config(self):
        """Yield configurations of hosts that differ most, their policy in a file."""
        for name in ("dedicated", "units", "pages"):
            request = requests.host_request(**CONFIGS[name])
            yield generate(request, "perfvm.yaml")

    def assert_divided(self, config, compute, scheduler, placement):
        """Each service finds its options in its configuration."""
        wanted = self.expected(config)
        own = wanted.keys() & {"dedicated", "shared", "reserved", "pages", "poll"}
        for text, keys in ((compute, own), (scheduler, wanted.keys() - own)):
            found = self.values(text)
            self.assertEqual(
                {key: wanted[key] for key in keys}, {key: found[key] for key in keys}
            )
        named = self.options(scheduler).perfvm.policy_file
        self.assertEqual("/etc/nova/perfvm.yaml", named)
        self.assertIn("allocation_conflict_retry_count = 1\n", placement)

    def write_files(self, tool, config):
        """Write a tool's files as ``--output-dir`` does; return the directory."""
        root = self.directory / "files"
        shutil.rmtree(root, ignore_errors=True)
        for path, text in deployers.files_of(tool, config).items():
            name = path.lstrip("/")
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return root
