# SPDX-License-Identifier: Apache-2.0
"""What is supposed of a real cloud, and what comes of doing it."""

import json

from tests.functional import base
from tests.functional.client import ClientMixin
from tests.functional.elastic import PLAIN_GENERAL, ElasticTest

MEASURES = ("total", "used", "free", "unfit")
NOTHING = dict.fromkeys(MEASURES, 0)


class WhatIfMixin(ClientMixin):
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

    def _rows(self, *arguments, named=()):
        status, stdout, stderr = self.run_command(*arguments, *named, "-f", "json")
        self.assertEqual(0, status, stderr)
        return json.loads(stdout)


class TestUnits(WhatIfMixin, ElasticTest):
    def setUp(self):
        super().setUp()
        self.create_plain_flavors()
        self.named = ["--policy-in-use", self.path]
        for host in ("e1", "plain", "empty"):
            self.cloud.start_configured(host, self.policy, "elastic")
        self.enroll("e1")
        self.boot(base.HP_64)
        self.server = self.boot_before(PLAIN_GENERAL, host="plain")

    def _rows(self, *arguments):
        named = {"capacity": self.policy_file(), "plan": self.named}
        return super()._rows(*arguments, named=named[arguments[0]])

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


class TestSlots(WhatIfMixin, base.FunctionalTest):
    PLACEMENT = "slots"

    def test_hosts_added_and_removed(self):
        for host in ("h1", "h2"):
            self.cloud.start_configured(host, self.policy, "dedicated")
        server = self.boot(host="h1")
        before, after = self.what_if(
            *("--add", "1x2x20", "--memory-gb", "500", "--remove", "h1")
        )
        now = self.capacity()
        (new,) = before.keys() - now.keys()
        self.assertEqual(now | {new: NOTHING}, before)

        self.cloud.start_configured("h3", self.policy, "dedicated")
        self.servers.live_migrate(server, "h2")

        after["h3"] = after.pop(new)
        found = self.capacity()
        # It is empty, and gone in the other.
        self.assertEqual({"total": 2, "used": 0, "free": 2, "unfit": 0}, found["h1"])
        self.assertEqual(NOTHING, after["h1"])
        # The server fits either of the others as well.
        others = ("h2", "h3")
        self.assertCountEqual([found[h] for h in others], [after[h] for h in others])
