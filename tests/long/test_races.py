# SPDX-License-Identifier: Apache-2.0
"""What storms break where Placement counts neither slots nor units.

The filter alone keeps neither the cap nor the classes apart when many ask at once.
"""

from nova_perfvm import findings
from tests.cloud import DEFAULT_FILTERS
from tests.functional import base
from tests.storm.test_races import HIGH, Storm


class BrokenStorm(Storm):
    def check_broken(self, shapes, expected, **options):
        """Storm until rules are violated: by these codes, and no others."""
        for seed in range(5):
            servers = self.storm(seed, **options)
            found = {violation.code for violation in self.findings(servers, shapes)}
            self.assertLessEqual(found, expected)
            if found:
                return
            self.clear(servers)
        self.fail("the storm proves nothing: the filter alone kept the rules")


class TestWithoutPlacement(BrokenStorm, base.FunctionalTest):
    """Dedicated hosts whose flavors ask for no slots."""

    CLOUD = {"enabled_filters": DEFAULT_FILTERS}  # noqa: RUF012

    def test_the_cap_is_exceeded(self):
        shapes = {"hp1": "4x20", "hp2": "4x20"}
        for host in shapes:
            self.cloud.start_host(host, "4x20", memory_gb=1000, dedicated="0-79")
        self.check_broken(
            shapes, {findings.TOO_MANY_ON_HOST}, flavors=(HIGH,), requests=8
        )


class TestOpenHostsWithoutUnits(BrokenStorm, base.FunctionalTest):
    """A host that either class may use, and flavors that ask for no units."""

    CLOUD = {  # noqa: RUF012
        "enabled_filters": DEFAULT_FILTERS,
        "disable_fallback_pcpu_query": False,
    }

    def test_classes_meet(self):
        self.cloud.start_host("e1")
        self.check_broken({"e1": "2x20"}, {findings.CLASSES_MIXED}, requests=8)
