# SPDX-License-Identifier: Apache-2.0
"""Hosts made elastic while VMs without units run on them."""

from nova_perfvm import constants as const
from nova_perfvm.cloud.errors import RefusedError
from tests.functional import base
from tests.functional.elastic import PLAIN_HP, ElasticTest


class BackfillCase(ElasticTest):
    def setUp(self):
        super().setUp()
        self.create_plain_flavors()
        self.cloud.start_host("h1")

    def backfill(self, **options):
        return self.enroll("h1", backfill=True, **options)


class TestBackfill(BackfillCase):
    def test_high_performance_vms(self):
        first, second = self.boot_before(PLAIN_HP), self.boot_before(PLAIN_HP)
        before = [self.allocations(server) for server in (first, second)]

        exc = self.assertRaises(RefusedError, self.enroll, "h1")
        self.assertIn(first.name, str(exc))
        self.assertIn("--backfill", str(exc))
        self.assert_ordinary("h1")

        self.backfill()

        self.assert_elastic("h1")
        self.assertEqual({"a": [1000], "b": [1000]}, self.units("h1"))
        for server, had in zip((first, second), before, strict=True):
            has = self.allocations(server)
            self.assertEqual(had, {"h1": has.pop("h1")})
            self.assertEqual([{const.RC_UNIT: 1000}], list(has.values()))
        self.boot_refused(base.GENERAL_2)
        self.servers.delete(first)
        self.servers.delete(second)
        self.assertEqual({"a": [], "b": []}, self.units("h1"))
        self.boot(base.GENERAL_2)
