# SPDX-License-Identifier: Apache-2.0
"""The weigher, on hosts that could serve either class."""

from tests.functional import base


class WeigherTest(base.FunctionalTest):
    """Three alike hosts without CPU sets; only the weighers differ."""

    CLOUD = {"disable_fallback_pcpu_query": False}  # noqa: RUF012

    def start_cloud(self, **options):
        super().start_cloud(**options)
        for name in ("open1", "open2", "open3"):
            self.cloud.start_host(name)

    def hosts_of(self, *flavors):
        """Boot one after the other; return the hosts of each."""
        return [self.boot(flavor).host for flavor in flavors]


class TestPacking(WeigherTest):
    def test_slots_are_left(self):
        general = set(self.hosts_of(*[base.GENERAL_2] * 3))
        self.assertEqual(1, len(general))
        high = self.hosts_of(*[base.HP_64] * 4)

        # Two to a host, the second where the first is.
        self.assertEqual(high[0], high[1])
        self.assertEqual(high[2], high[3])
        self.assertEqual({"open1", "open2", "open3"}, general | set(high))
