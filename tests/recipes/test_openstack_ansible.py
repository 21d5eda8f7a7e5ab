# SPDX-License-Identifier: Apache-2.0
"""OpenStack-Ansible's config_template on generated overrides."""

import pathlib
import sys

import yaml

from tests.recipes import base

HOST = "HOST"
# For the tasks of os_nova and os_placement, which have config_template, too.
TEMPLATE = "[DEFAULT]\nstate_path = /var/lib/nova\nreserved_host_memory_mb = 2048\n"
CONFIG = "[defaults]\naction_plugins = {plugins}\ncollections_path = {collections}\n"


def task(name, **arguments):
    dest = f"{{{{ playbook_dir }}}}/{name}"
    return {"openstack.config_template.config_template": {"dest": dest, **arguments}}


def of_template(overrides):
    """Return the arguments of a task that writes a configuration."""
    return {"src": "template.conf", "config_overrides": overrides, "config_type": "ini"}


class OpenStackAnsibleTest(base.RecipeCase):
    VARIABLE = "PERFVM_CONFIG_TEMPLATE"

    def setUp(self):
        super().setUp()
        # As ansible-galaxy lays a collection out.
        place = self.directory / "ansible_collections/openstack/config_template"
        place.parent.mkdir(parents=True)
        place.symlink_to(self.tool)
        self.write("template.conf", TEMPLATE)
        self.write(
            "ansible.cfg",
            CONFIG.format(
                plugins=self.tool / "plugins/action", collections=self.directory
            ),
        )

    def play(self, variables, name, **arguments):
        self.write("variables.yml", variables)
        tasks = [task(name, **arguments)]
        play = {"hosts": HOST, "gather_facts": False, "tasks": tasks}
        self.write("play.yml", yaml.safe_dump([play]))
        self.run_tool(
            *(pathlib.Path(sys.executable).parent / "ansible-playbook", "play.yml"),
            *("-i", f"{HOST},", "-c", "local", "-e", "@variables.yml"),
            *("-e", f"ansible_python_interpreter={sys.executable}"),
        )
        return (self.directory / name).read_text()

    def test_what_services_read(self):
        for config in self.each_config():
            root = self.write_files("osa", config) / "etc/openstack_deploy"
            hosts = (root / f"host_vars/{HOST}.yml").read_text()
            nova = of_template("{{ nova_nova_conf_overrides }}")
            host = self.play(hosts, "host.conf", **nova)
            scheduler = self.play(
                (root / "group_vars/nova_scheduler.yml").read_text(), "sch.conf", **nova
            )
            placement = self.play(
                (root / "group_vars/placement_all.yml").read_text(),
                "placement.conf",
                **of_template("{{ placement_placement_conf_overrides }}"),
            )
            self.assertIn("state_path = /var/lib/nova\n", host)
            self.assert_divided(config, host, scheduler, placement)
            if config.provider is None:
                self.assertNotIn("nova_provider_overrides", hosts)
            else:
                provider = self.play(
                    hosts,
                    "provider.yaml",
                    content="{{ nova_provider_overrides[0].content }}",
                    config_type="yaml",
                )
                self.assertEqual(config.provider, yaml.safe_load(provider))
