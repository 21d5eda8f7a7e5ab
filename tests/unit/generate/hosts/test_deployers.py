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

ROOT = pathlib.Path(__file__).parents[4]
CONFIGS = {
    "dedicated": {},
    "smt": {"shape": "2x21x2", "reserve": 1},
    "mixed": {"mode": "mixed", "policy": policy_of(exclusive="cell")},
    "shared": {"mode": "shared"},
    "units": {"mode": "elastic", "policy": policy_of("units")},
    "pages": {"shape": "2x22", "policy": policy_of(mem_page_size="1GB"), "reserve": 2},
}


def merged(overrides):
    """Return what config_template of OpenStack-Ansible makes of overrides.

    As its ``_option_write`` and ``_write_check`` do: a mapping without values is an
    option that is there several times.
    """
    lines = []
    for section, values in overrides.items():
        lines.append(f"[{section}]")
        for key, value in values.items():
            several = isinstance(value, dict) and not any(value.values())
            each = sorted(value) if several else [value]
            lines += [f"{key} = {one}" for one in each]
    return "\n".join(lines) + "\n"


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


class DeployersCase(OptionsCase):
    def each(self):
        for name, requested in CONFIGS.items():
            with self.subTest(name):
                yield configured(**requested)


class DeployersTest(DeployersCase):
    def provider(self, text):
        (self.directory / "provider.yaml").write_text(text)
        return provider_config.get_provider_configs(str(self.directory))

    def test_kolla(self):
        for config in self.each():
            files = deployers.kolla_files(config)
            names = ("nova/HOST/nova.conf", "nova/nova-scheduler.conf")
            both = "".join(files[f"/etc/kolla/config/{name}"] for name in names)
            self.assertEqual(self.expected(config), self.values(both))
            self.assertIn(
                "allocation_conflict_retry_count = 1",
                files["/etc/kolla/config/placement.conf"],
            )
            if config.provider is None:
                self.assertNotIn("host_vars/HOST.yml", files)
                continue
            variables = yaml.safe_load(files["host_vars/HOST.yml"])
            found = variables["nova_cell_compute_provider_config"]
            self.assertEqual(config.provider, found)
            self.assertIn("$COMPUTE_NODE", self.provider(yaml.safe_dump(found)))

    def test_openstack_ansible(self):
        for config in self.each():
            host, scheduler, placement = (
                yaml.safe_load(text) for text in deployers.osa_files(config).values()
            )
            both = merged(host["nova_nova_conf_overrides"])
            both += merged(scheduler["nova_nova_conf_overrides"])
            self.assertEqual(self.expected(config), self.values(both))
            self.assertEqual(
                {"placement": {"allocation_conflict_retry_count": "1"}},
                placement["placement_placement_conf_overrides"],
            )
            (own,) = host.get("nova_provider_overrides", [{"content": None}])
            self.assertEqual(config.provider, own["content"])

    def test_plain(self):
        for config in self.each():
            files = deployers.plain_files(config)
            names = ("50-perfvm-compute.conf", "50-perfvm-scheduler.conf")
            both = "".join(files[f"/etc/nova/nova.conf.d/{name}"] for name in names)
            self.assertEqual(self.expected(config), self.values(both))
            text = files.get("/etc/nova/provider_config/perfvm.yaml")
            self.assertEqual(config.provider, yaml.safe_load(text) if text else None)

    def test_each_file_is_below_its_path(self):
        config = configured()
        for tool, files in deployers.FILES.items():
            text = deployers.as_text(tool, config)
            for path, content in files(config).items():
                self.assertIn(f"# ==> {path}\n{content}", text)

    def test_every_path_that_there_may_be_is_known(self):
        for config in self.each():
            for tool, files in deployers.FILES.items():
                found = list(files(config))
                some = [path for path in deployers.KNOWN[tool] if path in found]
                self.assertEqual(some, found)
                below = deployers.below(tool, config)
                self.assertFalse([path for path in below if path.startswith("/")])
                self.assertEqual(set(), set(below) - set(deployers.known_below(tool)))


class KubernetesTest(DeployersCase):
    def test_openstack_helm(self):
        for config in self.each():
            files = deployers.FILES["helm"](config)
            nova = yaml.safe_load(files["nova.yaml"])
            (host,) = nova["conf"]["overrides"]["nova_compute"]["hosts"]
            text = helm_ini(nova["conf"]["nova"]) + helm_ini(host["conf"]["nova"])
            self.assertEqual(self.expected(config), self.values(text))
            self.assertEqual(
                {"placement": {"allocation_conflict_retry_count": "1"}},
                yaml.safe_load(files["placement.yaml"])["conf"]["placement"],
            )
            path = "/etc/nova/provider_config/perfvm.yaml"
            mounts = nova.get("pod", {}).get("mounts", {})
            self.assertEqual(config.provider is not None, path in files)
            self.assertEqual(path in files, "nova_compute" in mounts)
            if path in files:
                self.assertEqual(config.provider, yaml.safe_load(files[path]))
                (mount,) = mounts["nova_compute"]["nova_compute"]["volumeMounts"]
                self.assertTrue(path.startswith(f"{mount['mountPath']}/"))

    def test_rhoso(self):
        for config in self.each():
            plane, extra = map(
                yaml.safe_load, deployers.FILES["rhoso"](config).values()
            )
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
            nova = yaml.safe_load(deployers.FILES["helm"](config)["nova.yaml"])
            mounts = nova["pod"]["mounts"]
            found = {
                name
                for name in mounts
                for mount in mounts[name][name]["volumeMounts"]
                if mount["mountPath"] == options.POLICY_FILE
            }
            self.assertEqual(readers, found)
            plane = yaml.safe_load(
                deployers.FILES["rhoso"](config)["openstackcontrolplane.yaml"]
            )
            template = plane["spec"]["nova"]["template"]
            self.assertEqual(bool(readers), "apiServiceTemplate" in template)
            if readers:
                text = template["apiServiceTemplate"]["customServiceConfig"]
                conf = self.options(text)
                self.assertEqual(options.POLICY_FILE, conf.perfvm.policy_file)


READERS = {"nova_scheduler", "nova_api_osapi"}


def helm_ini(sections):
    """Return what OpenStack-Helm makes of values: a line for each of several."""
    lines = []
    for section, values in sections.items():
        lines.append(f"[{section}]")
        for key, value in values.items():
            several = value["values"] if isinstance(value, dict) else [value]
            lines += [f"{key} = {one}" for one in several]
    return "\n".join(lines) + "\n"
