# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.cloud import live_hosts
from nova_perfvm.cloud.errors import CloudError
from tests.unit.cloud.fake_api import FakeAPI


class WhileHostsAreReadTest(testtools.TestCase):
    """The hypervisors were listed before something happened to the host."""

    def setUp(self):
        super().setUp()
        self.api = FakeAPI(hosts=2)
        self.among = live_hosts.hypervisors(self.api)

    def read(self):
        return live_hosts.read_host(self.api, "h1", self.among)

    def test_its_cell_went_down(self):
        self.assertEqual("h1", self.read().host)
        self.api.lost = ["h1"]
        exc = self.assertRaises(CloudError, self.read)
        self.assertIn("does not reach its cell", str(exc))

    def test_its_service_was_deleted(self):
        self.api.hosts = ["h0"]
        exc = self.assertRaises(CloudError, self.read)
        self.assertIn("no nova-compute service of h1 any more", str(exc))
