# SPDX-License-Identifier: Apache-2.0
"""What Nova itself says to generated files, without a service."""

from unittest import mock

import testtools
from hypothesis import given, settings
from nova import conf as nova_conf
from nova.virt.libvirt import driver
from oslo_config import fixture as config_fixture

from nova_perfvm import cpuset
from tests.unit.generate.hosts.requests import configs


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
