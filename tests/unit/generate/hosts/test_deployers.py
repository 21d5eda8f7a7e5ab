# SPDX-License-Identifier: Apache-2.0
"""Files of tools for deployment, read by Nova's own oslo.config."""

import pathlib

import fixtures
import testtools
import yaml
from nova import conf as nova_conf
from nova.compute import provider_config
from oslo_config import cfg

from nova_perfvm import conf as perfvm_conf
from nova_perfvm.generate import options
from nova_perfvm.generate.hosts import deployers, generate, rendering
from tests.unit.generate.hosts.requests import configured, host_request, policy_of

CONFIGS = {
    "dedicated": {},
    "smt": {"shape": "2x21x2", "reserve": 1},
    "mixed": {"mode": "mixed", "policy": policy_of(exclusive="cell")},
    "shared": {"mode": "shared"},
    "units": {"mode": "elastic", "policy": policy_of("units")},
    "pages": {"shape": "2x22", "policy": policy_of(mem_page_size="1GB"), "reserve": 2},
}


def ini(sections, several):
    """Return what a tool makes of options by section.

    :param several: returns the values of one that is there several times
    """
    lines = []
    for section, values in sections.items():
        lines.append(f"[{section}]")
        for key, value in values.items():
            each = several(value) if isinstance(value, dict) else [value]
            lines += [f"{key} = {one}" for one in each]
    return "\n".join(lines) + "\n"


def merged(overrides):
    """As ``_option_write`` and ``_write_check`` of OpenStack-Ansible do."""
    return ini(overrides, sorted)


def helm_ini(values):
    """As OpenStack-Helm's ``to_oslo_conf`` does."""
    return ini(values, lambda value: value["values"])


class OptionsCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def options(self, text):
        """Return what Nova's options are with a text as nova.conf."""
        path = self.directory / "nova.conf"
        path.write_text(text)
        conf = cfg.ConfigOpts()
        for module in (nova_conf.compute, nova_conf.libvirt, nova_conf.scheduler):
            module.register_opts(conf)
        nova_conf.workarounds.register_opts(conf)
        perfvm_conf.register_opts(conf)
        conf(["--config-file", str(path)], project="nova", default_config_files=[])
        return conf

    def expected(self, config):
        files = rendering.as_files(config)
        both = files["nova.conf"] + files["scheduler.conf"]
        return self.values(both)

    def values(self, text):
        conf = self.options(text)
        return {
            "dedicated": conf.compute.cpu_dedicated_set,
            "shared": conf.compute.cpu_shared_set,
            "reserved": conf.reserved_host_memory_mb,
            "pages": conf.reserved_huge_pages,
            "poll": conf.running_deleted_instance_poll_interval,
            "available": conf.filter_scheduler.available_filters,
            "enabled": conf.filter_scheduler.enabled_filters,
            "weights": conf.filter_scheduler.weight_classes,
            "fallback": conf.workarounds.disable_fallback_pcpu_query,
        }


class DeployersTest(OptionsCase):
    """Nova and Placement read the same of each tool's files as of a host's own."""

    def each(self, tool):
        """Yield each configuration with a tool's files, those of YAML as data."""
        for name, requested in CONFIGS.items():
            with self.subTest(name):
                config = configured(**requested)
                files = deployers.files_of(tool, config)
                known = list(deployers.TOOLS[tool])
                self.assertEqual([path for path in known if path in files], list(files))
                yield (
                    config,
                    [
                        yaml.safe_load(files.get(path, "null"))
                        if path.endswith((".yml", ".yaml"))
                        else files[path]
                        for path in known
                    ],
                )

    def provider(self, text):
        (self.directory / "provider.yaml").write_text(text)
        return provider_config.get_provider_configs(str(self.directory))

    def test_kolla(self):
        for config, (nova, scheduler, placement, host) in self.each("kolla"):
            self.assertEqual(self.expected(config), self.values(nova + scheduler))
            self.assertIn("allocation_conflict_retry_count = 1", placement)
            found = host and host["nova_cell_compute_provider_config"]
            self.assertEqual(config.provider, found)
            if found:
                self.assertIn("$COMPUTE_NODE", self.provider(yaml.safe_dump(found)))

    def test_openstack_ansible(self):
        for config, (host, scheduler, placement) in self.each("osa"):
            both = merged(host["nova_nova_conf_overrides"])
            both += merged(scheduler["nova_nova_conf_overrides"])
            self.assertEqual(self.expected(config), self.values(both))
            self.assertEqual({"placement_placement_conf_overrides": RETRIES}, placement)
            (own,) = host.get("nova_provider_overrides", [{"content": None}])
            self.assertEqual(config.provider, own["content"])

    def test_plain(self):
        for config, (nova, provider, scheduler, _) in self.each("plain"):
            self.assertEqual(self.expected(config), self.values(nova + scheduler))
            self.assertEqual(config.provider, provider)

    def test_openstack_helm(self):
        for config, (nova, placement, provider) in self.each("helm"):
            (host,) = nova["conf"]["overrides"]["nova_compute"]["hosts"]
            text = helm_ini(nova["conf"]["nova"]) + helm_ini(host["conf"]["nova"])
            self.assertEqual(self.expected(config), self.values(text))
            self.assertEqual({"conf": {"placement": RETRIES}}, placement)
            self.assertEqual(config.provider, provider)
            mounts = nova["pod"]["mounts"]
            self.assertEqual(provider is not None, "nova_compute" in mounts)
            if provider:
                (mount,) = mounts["nova_compute"]["nova_compute"]["volumeMounts"]
                self.assertEqual("/etc/nova/provider_config", mount["mountPath"])

    def test_rhoso(self):
        for config, (plane, extra) in self.each("rhoso"):
            nova = plane["spec"]["nova"]["template"]
            text = nova["schedulerServiceTemplate"]["customServiceConfig"]
            data = extra["data"]
            conf = data.pop("50-nova-perfvm.conf")
            self.assertEqual(self.expected(config), self.values(text + conf))
            self.assertEqual(
                "[placement]\nallocation_conflict_retry_count = 1\n",
                plane["spec"]["placement"]["template"]["customServiceConfig"],
            )
            # As edpm_nova finds them: provider*.yaml.
            provider = data.pop("provider-perfvm.yaml", None)
            self.assertEqual(config.provider, yaml.safe_load(provider or "null"))
            self.assertEqual({}, data)

    def test_readers_of_the_policy(self):
        """nova-scheduler and nova-api get a file; the built-in policy has none."""
        for path, readers in ((None, set()), ("perfvm.yaml", READERS)):
            config = generate(host_request(), path)
            nova = yaml.safe_load(deployers.files_of("helm", config)["nova.yaml"])
            found = {
                name
                for name, own in nova["pod"]["mounts"].items()
                for mount in own[name]["volumeMounts"]
                if mount["mountPath"] == options.POLICY_FILE
            }
            self.assertEqual(readers, found)
            plane = yaml.safe_load(
                deployers.files_of("rhoso", config)["openstackcontrolplane.yaml"]
            )
            template = plane["spec"]["nova"]["template"]
            self.assertEqual(bool(readers), "apiServiceTemplate" in template)
            if readers:
                text = template["apiServiceTemplate"]["customServiceConfig"]
                conf = self.options(text)
                self.assertEqual(options.POLICY_FILE, conf.perfvm.policy_file)


RETRIES = {"placement": {"allocation_conflict_retry_count": "1"}}
READERS = {"nova_scheduler", "nova_api_osapi"}
