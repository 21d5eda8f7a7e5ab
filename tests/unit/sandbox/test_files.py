# SPDX-License-Identifier: Apache-2.0

import configparser
from pathlib import Path

import yaml

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.policy import loader
from tests.directory import DirectoryCase
from tests.processes import files
from tests.processes.environment import Environment
from tests.processes.hostspec import host_configs, parse_hosts
from tests.processes.layout import Layout
from tests.processes.policy import sandbox_policy
from tests.processes.ports import NAMES
from tests.processes.settings import SandboxSettings

SEVERAL = Path(__file__).parents[2] / "long" / "several-classes.yaml"
PORTS = {name: 21000 + number for number, name in enumerate(NAMES)}


class FilesTest(DirectoryCase):
    def setUp(self):
        super().setUp()
        self.layout = Layout(self.directory / "state")
        environment = Environment(self.directory / "venv")
        paste = environment.etc / "nova" / "api-paste.ini"
        paste.parent.mkdir(parents=True)
        paste.write_text("")
        self.environment = environment

    def write(self, hosts, *, volumes=False):
        pretended = parse_hosts(hosts)
        policy = sandbox_policy(pretended, None, volumes=volumes)
        settings = SandboxSettings(hosts, policy.digest, PORTS, "secret", volumes)
        configs = host_configs(pretended, policy)
        files.write(self.layout, settings, self.environment, policy, configs, 2)
        return policy

    def read(self, *names):
        """Return a service's options as oslo.config would see them."""
        conf = configparser.RawConfigParser(strict=False, default_section="")
        found = conf.read([self.layout.etc / name for name in names])
        self.assertEqual(len(names), len(found))
        return conf

    def test_hosts_have_what_host_config_gives(self):
        self.write("dedicated:2x20,shared:2x20,dedicated:2x20x2")

        even = ",".join(str(cpu) for cpu in range(0, 80, 2))
        for host, option, cpus in (
            ("dedicated1", "cpu_dedicated_set", "0-39"),
            ("shared1", "cpu_shared_set", "0-39"),
            ("dedicated2", "cpu_dedicated_set", even),
        ):
            conf = self.read(f"hosts/{host}/nova.conf", f"hosts/{host}/sandbox.conf")
            self.assertEqual(cpus, conf["compute"][option])
            self.assertEqual(host, conf["DEFAULT"]["host"])
        path = self.layout.etc / "hosts/dedicated1/provider_config/provider.yaml"
        (provider,) = yaml.safe_load(path.read_text())["providers"]
        slots = provider["inventories"]["additional"][0]["CUSTOM_PERFVM_SLOT"]
        self.assertEqual(2, slots["total"])

    def test_scheduler(self):
        policy = self.write("elastic:2x20")

        conf = self.read(
            "nova/scheduler.conf", "nova/nova.conf", "nova/nova-scheduler-2.conf"
        )
        self.assertEqual("nova-scheduler-2", conf["DEFAULT"]["host"])
        self.assertIn("PerfVMFilter", conf["filter_scheduler"]["enabled_filters"])
        self.assertIn("PerfVMWeigher", conf["filter_scheduler"]["weight_classes"])
        self.assertEqual(
            "True", conf["scheduler"]["enable_isolated_aggregate_filtering"]
        )
        path = conf["perfvm"]["policy_file"]
        self.assertEqual(policy, loader.load(path))
        self.assertEqual(str(self.layout.policy), path)

    def test_cinder_is_there_if_it_is_asked_for(self):
        for volumes in (False, True):
            self.write("dedicated:2x20", volumes=volumes)
            there = (self.layout.etc / "cinder" / "cinder.conf").exists()
            self.assertEqual(volumes, there)
        conf = self.read("cinder/cinder.conf")
        module, _, name = conf["pretended"]["volume_driver"].rpartition(".")
        path = Path(files.__file__).parents[2] / f"{module.replace('.', '/')}.py"
        self.assertIn(f"class {name}(", path.read_text())

    def test_services(self):
        """Keystone's keys would be below /etc by default, which root could write."""
        self.write("dedicated:2x20")

        placement = self.read("placement/placement.conf")["placement"]
        self.assertEqual("1", placement["allocation_conflict_retry_count"])
        conf = self.read("keystone/keystone.conf")
        for section in ("fernet_tokens", "fernet_receipts", "credential"):
            path = conf[section]["key_repository"]
            self.assertTrue(path.startswith(str(self.layout.data)), section)
        computes = (self.layout.etc / "nova/nova-compute.conf").read_text()
        self.assertNotIn("mysql", computes)
        # Everything is on this machine only.
        for path in self.layout.etc.rglob("*.conf"):
            self.assertNotIn("0.0.0.0", path.read_text(), path)
        cloud = yaml.safe_load(self.layout.clouds.read_text())["clouds"]["perfvm"]
        self.assertEqual("http://127.0.0.1:21005/v3", cloud["auth"]["auth_url"])
        self.assertEqual("secret", cloud["auth"]["password"])

    def test_host_of_one_of_several_classes(self):
        policy = loader.load(SEVERAL)

        configs = host_configs(parse_hosts("dedicated:2x10@small,shared:2x20"), policy)

        self.assertEqual({"dedicated1", "shared1"}, configs.keys())
        for hosts in (
            *("dedicated:2x20", "dedicated:2x20@fast", "dedicated:2x20@general"),
            "shared:2x20@small",
        ):
            pretended = parse_hosts(hosts)
            self.assertRaises(PerfVMError, host_configs, pretended, policy)
