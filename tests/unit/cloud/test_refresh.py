# SPDX-License-Identifier: Apache-2.0
"""A host that is read again keeps what Nova's database has told of it."""

from dataclasses import replace

import testtools

from nova_perfvm.cloud.refresh import refresh
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.facts.snapshot import NOVA_DATABASE
from tests.unit.cloud.fake_api import FakeAPI


class RefreshTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.api = FakeAPI(hosts=2)
        self.before = read_snapshot(self.api)

    def test_facts_of_the_database_are_kept(self):
        told = {"unreadable": "ValueError: x", "cells_source": NOVA_DATABASE}
        capabilities = {"total_usable_ram_mb": "1", "cpu_info": "old"}
        capabilities["free_ram_mb"] = "1"
        hosts = [
            replace(h, capabilities=capabilities, **told) for h in self.before.hosts
        ]
        before = replace(self.before, hosts=tuple(hosts))
        host = refresh(self.api, before, ["h0"]).hosts[0]
        self.assertEqual("ValueError: x", host.unreadable)
        self.assertEqual("1", host.capabilities["total_usable_ram_mb"])
        # The plan has changed it.
        self.assertNotIn("free_ram_mb", host.capabilities)
        # The API shows it, and newer.
        shown = self.before.hosts[0].capabilities["cpu_info"]
        self.assertEqual(shown, host.capabilities["cpu_info"])

    def test_a_host_that_is_seen_again(self):
        before = replace(self.before, unseen_hosts=("elsewhere", "h0"))
        self.assertEqual(("elsewhere",), refresh(self.api, before, ["h0"]).unseen_hosts)
        self.assertEqual(
            ("elsewhere", "h0"), refresh(self.api, before, ["h1"]).unseen_hosts
        )
