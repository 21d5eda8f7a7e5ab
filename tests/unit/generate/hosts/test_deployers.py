# SPDX-License-Identifier: Apache-2.0
"""Files of tools for deployment, read by Nova's own oslo.config."""

import itertools

import yaml
from nova import conf as nova_conf
from nova.compute import provider_config
from oslo_config import cfg

from nova_perfvm import conf as perfvm_conf
from nova_perfvm.generate import options
from nova_perfvm.generate.hosts import deployers, generate, rendering
from tests.directory import DirectoryCase
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


class OptionsCase(DirectoryCase):
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


def kolla(nova, scheduler, placement, host):
    return (
        nova + scheduler,
        placement,
        host and host["nova_cell_compute_provider_config"],
    )


def openstack_ansible(host, scheduler, placement):
    nova = merged(host["nova_nova_conf_overrides"])
    nova += merged(scheduler["nova_nova_conf_overrides"])
    (own,) = host.get("nova_provider_overrides", [{"content": None}])
    options = placement["placement_placement_conf_overrides"]
    return nova, merged(options), own["content"]


def plain(nova, provider, scheduler, placement):
    return nova + scheduler, placement, provider


def openstack_helm(nova, placement, provider):
    (host,) = nova["conf"]["overrides"]["nova_compute"]["hosts"]
    text = helm_ini(nova["conf"]["nova"]) + helm_ini(host["conf"]["nova"])
    mounts = nova["pod"]["mounts"].get("nova_compute", {})
    paths = [
        m["mountPath"] for m in mounts.get("nova_compute", {}).get("volumeMounts", ())
    ]
    if paths != ([deployers.PROVIDER_DIRECTORY] if provider else []):
        raise AssertionError(f"nova-compute is given {paths}")
    return text, merged(placement["conf"]["placement"]), provider


def rhoso(plane, extra):
    nova = plane["spec"]["nova"]["template"]
    text = nova["schedulerServiceTemplate"]["customServiceConfig"]
    placement = plane["spec"]["placement"]["template"]["customServiceConfig"]
    # As edpm_nova finds them: provider*.yaml.
    data = extra["data"]
    provider = yaml.safe_load(data.get("provider-perfvm.yaml", "null"))
    return text + data["50-nova-perfvm.conf"], placement, provider


# Of each tool what Nova and Placement read in the end: nova.conf of the host and of
# nova-scheduler, placement.conf, and the host's provider.yaml.
READ = {
    "kolla": kolla,
    "osa": openstack_ansible,
    "plain": plain,
    "helm": openstack_helm,
    "rhoso": rhoso,
}


class DeployersTest(OptionsCase):
    def test_services_read_the_same_as_of_a_hosts_own_files(self):
        self.assertEqual(READ.keys(), deployers.TOOLS.keys())
        for tool, (name, requested) in itertools.product(READ, CONFIGS.items()):
            config = configured(**requested)
            files = deployers.files_of(tool, config)
            known = list(deployers.TOOLS[tool])
            self.assertEqual([path for path in known if path in files], list(files))
            nova, placement, provider = READ[tool](
                *(
                    yaml.safe_load(files.get(path, "null"))
                    if path.endswith((".yml", ".yaml"))
                    else files[path]
                    for path in known
                )
            )
            case = f"{tool}, {name}"
            expected = self.expected(config)
            self.assertEqual(expected, self.values(nova), case)
            # Guests of deleted servers are ended soon.
            self.assertEqual(60, expected["poll"], case)
            self.assertIn("\nallocation_conflict_retry_count = 1\n", placement, case)
            self.assertEqual(config.provider, provider, case)
            if provider:
                (self.directory / "provider.yaml").write_text(yaml.safe_dump(provider))
                found = provider_config.get_provider_configs(str(self.directory))
                self.assertIn("$COMPUTE_NODE", found)

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


READERS = {"nova_scheduler", "nova_api_osapi"}
