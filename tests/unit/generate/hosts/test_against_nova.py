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
from nova.virt.libvirt import driver
from oslo_config import fixture as config_fixture

from nova_perfvm import cpuset
from nova_perfvm.generate.hosts import rendering
from tests.unit.generate.hosts.requests import configs, configured

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


class ConfTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.conf = self.useFixture(config_fixture.Config(nova_conf.CONF))

    @settings(deadline=None)
    @given(configs())
    def test_the_driver_accepts_the_cpu_sets(self, config):
        sets = config.cpus
        for option, group, found in (
            ("cpu_dedicated_set", "compute", sets.dedicated),
            ("cpu_shared_set", "compute", sets.shared),
            ("vcpu_pin_set", None, sets.pin_set),
        ):
            self.conf.config(group=group, **{option: cpuset.format_cpus(found)})
        driver.LibvirtDriver._check_cpu_set_configuration(mock.Mock())
        host = mock.Mock()
        host._host.get_online_cpus.return_value = set(config.request.topology.cpus)
        vcpus = driver.LibvirtDriver._get_vcpu_available(host)
        pcpus = driver.LibvirtDriver._get_pcpu_available(host)
        self.assertEqual(sets.dedicated, pcpus)
        self.assertEqual(sets.shared | sets.either, vcpus)

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
