# SPDX-License-Identifier: Apache-2.0
"""Kolla-Ansible's own tasks, templates and merge_configs on generated files."""

import shutil

import yaml
from nova.compute import provider_config

from tests.recipes import base

ROLES = ("nova-cell", "nova", "placement")
# Of the roles' tasks/config.yml; the others ask containers or TLS certificates.
TASKS = {
    "Ensuring config directories exist",
    "Copying over nova.conf",
    "Copying over Nova compute provider config",
    "Copying over placement.conf",
}
HOST = "HOST"
CONFIG = """\
[defaults]
roles_path = roles:{ansible}/roles
action_plugins = {ansible}/action_plugins
filter_plugins = {ansible}/filter_plugins
library = {ansible}/library
module_utils = {ansible}/module_utils
"""
PLAY = [
    {
        "hosts": HOST,
        "gather_facts": True,
        "tasks": [
            {
                "ansible.builtin.include_role": {"name": role, "tasks_from": "config"},
            }
            for role in ROLES
        ],
    }
]


class KollaTest(base.RecipeCase):
    VARIABLE = "PERFVM_KOLLA"

    def setUp(self):
        super().setUp()
        share = self.tool / "share/kolla-ansible"
        self.ansible = share / "ansible"
        inventory = (self.ansible / "inventory/all-in-one").read_text()
        self.write(
            "inventory",
            inventory.replace("ansible_connection=local", "").replace(
                "localhost", HOST
            ),
        )
        self.write("ansible.cfg", CONFIG.format(ansible=self.ansible))
        self.write("play.yml", yaml.safe_dump(PLAY, sort_keys=False))
        passwords = yaml.safe_load(
            (share / "etc_examples/kolla/passwords.yml").read_text()
        )
        self.write("passwords.yml", yaml.safe_dump(dict.fromkeys(passwords, "secret")))
        (self.directory / "group_vars").mkdir()
        (self.directory / "group_vars/all").symlink_to(self.ansible / "group_vars/all")
        for role in ROLES:
            self.copy_role(role)

    def copy_role(self, name):
        """Take a role with those of its tasks that write the files."""
        role = self.directory / "roles" / name
        shutil.copytree(self.ansible / "roles" / name, role)
        tasks = yaml.safe_load((role / "tasks/config.yml").read_text())
        kept = [task for task in tasks if task["name"] in TASKS]
        self.assertGreater(len(kept), 1)
        (role / "tasks/config.yml").write_text(yaml.safe_dump(kept, sort_keys=False))

    def play(self, config):
        """Let the roles write all files; return their directory."""
        root = self.write_files("kolla", config)
        node = self.directory / "node"
        shutil.rmtree(node, ignore_errors=True)
        variables = {
            "ansible_connection": "local",
            "ansible_become": False,
            "ansible_python_interpreter": str(self.tool / "bin/python"),
            "network_interface": "lo",
            "kolla_internal_vip_address": "127.0.0.1",
            "kolla_base_distro": "debian",
            "enable_haproxy": False,
            "config_owner_user": "root",
            "config_owner_group": "root",
            "node_config": str(node),
            "node_config_directory": str(node),
            # Its filter is of a collection, ansible.utils.
            "kolla_same_external_internal_vip": True,
            "node_custom_config": str(root / "etc/kolla/config"),
        }
        self.write("globals.yml", yaml.safe_dump(variables))
        own = root / f"host_vars/{HOST}.yml"
        given = ["-e", f"@{own}"] if own.exists() else []
        self.run_tool(
            *(self.tool / "bin/ansible-playbook", "-i", "inventory", "play.yml"),
            *("-e", "@globals.yml", "-e", "@passwords.yml", *given),
        )
        return node

    def test_what_services_read(self):
        for config in self.each_config():
            node = self.play(config)
            compute = (node / "nova-compute/nova.conf").read_text()
            scheduler = (node / "nova-scheduler/nova.conf").read_text()
            for text in (compute, scheduler):
                # Kolla's own are there.
                self.assertIn("state_path = /var/lib/nova\n", text)
            placement = (node / "placement-api/placement.conf").read_text()
            self.assert_divided(config, compute, scheduler, placement)
            self.assertIn("[placement_database]\n", placement)
            self.assert_provider(config, node / "nova-compute")

    def assert_provider(self, config, directory):
        path = directory / "provider_config.yaml"
        self.assertEqual(config.provider is not None, path.exists())
        if path.exists():
            found = provider_config.get_provider_configs(str(directory))
            self.assertIn("$COMPUTE_NODE", found)
            self.assertEqual(config.provider, yaml.safe_load(path.read_text()))
