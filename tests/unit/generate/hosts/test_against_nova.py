# SPDX-License-Identifier: Apache-2.0
"""What Nova itself says to generated files, without a service."""

import pathlib
import subprocess
import sys
from unittest import mock

import fixtures
import testtools
from hypothesis import given, settings
from nova import conf as nova_conf
from nova.compute import provider_config
from nova.virt.libvirt import driver
from oslo_config import fixture as config_fixture

from nova_perfvm import conf as perfvm_conf
from nova_perfvm import cpuset
from nova_perfvm.generate.hosts import rendering
from tests.unit.generate.hosts.requests import configs, configured, policy_of

CPU_OPTIONS = (
    ("DEFAULT", "vcpu_pin_set"),
    ("compute", "cpu_dedicated_set"),
    ("compute", "cpu_shared_set"),
)
# As nova-compute starts: the options first, and then the manager.
READ_PERIODIC = """
import sys
from nova import config
config.parse_args(["nova-compute"], default_config_files=[sys.argv[1]])
from nova.compute.manager import CONF, ComputeManager
name = "_cleanup_running_deleted_instances"
print(
    name in dict(ComputeManager._periodic_tasks),
    ComputeManager._periodic_spacing[name],
    CONF.running_deleted_instance_action,
)
"""


class NovaCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.conf = self.useFixture(config_fixture.Config(nova_conf.CONF))
        perfvm_conf.register_opts(nova_conf.CONF)

    def set_cpus(self, config_values):
        for section, option in CPU_OPTIONS:
            value = config_values.get((section, option))
            group = None if section == "DEFAULT" else section
            self.conf.config(group=group, **{option: value})

    def set_sets(self, cpus):
        self.set_cpus(
            {
                ("compute", "cpu_dedicated_set"): cpuset.format_cpus(cpus.dedicated),
                ("compute", "cpu_shared_set"): cpuset.format_cpus(cpus.shared),
                ("DEFAULT", "vcpu_pin_set"): cpuset.format_cpus(cpus.pin_set),
            }
        )


class ConfTest(NovaCase):
    @settings(deadline=None)
    @given(configs())
    def test_the_driver_accepts_the_cpu_sets(self, config):
        self.set_sets(config.cpus)
        driver.LibvirtDriver._check_cpu_set_configuration(mock.Mock())
        host = mock.Mock()
        host._host.get_online_cpus.return_value = set(config.request.topology.cpus)
        vcpus = driver.LibvirtDriver._get_vcpu_available(host)
        pcpus = driver.LibvirtDriver._get_pcpu_available(host)
        self.assertEqual(config.cpus.dedicated, pcpus)
        self.assertEqual(config.cpus.shared | config.cpus.either, vcpus)

    def test_guests_of_deleted_servers_are_ended_soon(self):
        """Nova reads the interval once, where it declares the periodic task."""
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        path = directory / "nova.conf"
        path.write_text(rendering.as_files(configured())["nova.conf"])
        found = subprocess.run(
            [sys.executable, "-c", READ_PERIODIC, str(path)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.assertEqual("True 60 reap\n", found.stdout)


class ProviderTest(NovaCase):
    def test_nova_reads_it(self):
        disk = {"source": "volume", "read_iops": 10, "write_iops": 10}
        for config in (
            configured(),
            configured("2x20x2", "mixed", policy=policy_of(exclusive="cell")),
            configured(policy=policy_of("units")),
            configured(policy=policy_of(disk=disk), read_iops=99, write_iops=98),
        ):
            directory = self.useFixture(fixtures.TempDir()).path
            path = pathlib.Path(directory) / "provider.yaml"
            path.write_text(rendering.as_files(config)[rendering.PROVIDER_YAML])
            found = provider_config.get_provider_configs(directory)
            self.assertEqual(["$COMPUTE_NODE"], list(found))
            (expected,) = config.provider["providers"]
            self.assertEqual(
                expected | {"__source_file": "provider.yaml"}, found["$COMPUTE_NODE"]
            )
