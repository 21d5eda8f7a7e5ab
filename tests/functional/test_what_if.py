# SPDX-License-Identifier: Apache-2.0
"""What is supposed of a real cloud, and what comes of doing it."""

import fixtures

from tests.functional import base
from tests.functional.client import ClientMixin
from tests.functional.elastic import PLAIN_GENERAL, ElasticTest

MEASURES = ("total", "used", "free", "unfit")


class TestWhatIf(ClientMixin, ElasticTest):
    def what_if(self, *arguments):
        """Return {host: slots} before and after."""
        before, after = {}, {}
        for row in self._rows("plan", "what-if", "--by", "host", *arguments):
            for side, key in ((before, "Before"), (after, "After")):
                side.setdefault(row["Host"], {})[row["Slots"]] = row[key]
        return before, after

    def capacity(self):
        """Return {host: slots} as they are."""
        return {
            row["Host"]: {name: row[name.capitalize()] for name in MEASURES}
            for row in self._rows("capacity", "show")
        }

    def _rows(self, *arguments):
        with fixtures.EnvironmentVariable("PERFVM_POLICY", self.path):
            status, rows, stderr = self.run_json(*arguments)
        self.assertEqual(0, status, stderr)
        return rows

    def setUp(self):
        super().setUp()
        self.create_plain_flavors()
        for host in ("e1", "plain", "empty"):
            self.cloud.start_configured(host, self.policy, "elastic")
        self.enroll("e1")
        self.boot(base.HP_64)
        self.server = self.boot_before(PLAIN_GENERAL, host="plain")

    def test_hosts_that_are_flipped_and_added(self):
        flips = ("--flip", "plain=elastic", "--flip", "empty=elastic")
        before, after = self.what_if(*flips)
        self.assertEqual(
            dict(zip(MEASURES, (0, 0, 0, 0), strict=True)), before["empty"]
        )
        self.assertEqual(dict(zip(MEASURES, (2, 0, 2, 0), strict=True)), after["empty"])

        self.enroll("empty")
        self.enroll("plain", backfill=True)

        self.assertEqual(after, self.capacity())

        _, after = self.what_if("--add", "1x2x20", "--memory-gb", "500")
        (new,) = after.keys() - self.capacity().keys()

        self.cloud.start_configured("e2", self.policy, "elastic")
        self.enroll("e2")

        after["e2"] = after.pop(new)
        self.assertEqual(after, self.capacity())
