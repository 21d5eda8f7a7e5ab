# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Storms of requests from several clients at several schedulers."""

import os

from nova_perfvm.audit import finding
from tests.sandbox import base, storms
from tests.sandbox.base import GENERAL, HP

ROUNDS = int(os.environ.get("PERFVM_STORM_ROUNDS", "1"))
# These have CPUs for four high-performance VMs, and slots for two.
BIG = ("dedicated7", "dedicated8")


def check_rounds(test):
    """Fill the hosts with either class, judge, and empty them."""
    for seed in range(ROUNDS):
        servers = test.storm(test.calls(seed))
        test.assert_invariants(servers)
        for flavor in (HP, GENERAL):
            test.assertGreater(storms.running(servers, flavor), 0)
        test.delete_all()


class SlotsStormTest(storms.StormTest):
    """Dedicated, mixed and shared hosts."""

    HOSTS = "6xdedicated:2x20,2xdedicated:4x20,8xmixed:2x20,4xshared:2x20"
    WISHES = {"schedulers": 3}  # noqa: RUF012

    def test_invariants_hold(self):
        check_rounds(self)

    def test_retries_of_placement_break_them(self):
        """[placement]allocation_conflict_retry_count, at its default."""
        self.assert_invariants(self.storm(self.rush(0)))
        self.delete_all()
        self.sandbox.set_placement_retries(10)
        self.addCleanup(self.sandbox.set_placement_retries, 1)

        for seed in range(5):
            self.storm(self.rush(seed))
            complaints, over = self.complaints(), self.books().over
            base.tell(f"{complaints} {over}")
            if complaints:
                self.assertNotEqual((), over)
                codes = {code for code, _, _ in self.audit()}
                self.assertEqual(
                    {
                        finding.RETRY_COUNT,
                        finding.OVER_INVENTORY,
                        finding.TOO_MANY_ON_HOST,
                    },
                    codes,
                )
                return
            self.delete_all()
        self.fail("the storm proves nothing: Placement granted what it has")

    def rush(self, seed):
        """Give requests that all want the same two hosts."""
        return self.calls(seed, 32, (HP,), BIG)


class ElasticStormTest(storms.StormTest):
    """Elastic hosts, and a few dedicated ones."""

    HOSTS = "16xelastic:2x20,4xdedicated:2x20"
    WISHES = {"schedulers": 3}  # noqa: RUF012

    def test_invariants_hold(self):
        check_rounds(self)


class FiltersOnlyStormTest(storms.StormTest):
    """The same without Placement's layer: why it is there."""

    HOSTS = "2xdedicated:4x20"
    WISHES = {"schedulers": 3, "filters_only": True}  # noqa: RUF012

    def test_the_cap_is_exceeded(self):
        for seed in range(5):
            self.storm(self.calls(seed, 32, (HP,)))
            complaints = self.complaints()
            base.tell(f"{complaints}")
            if complaints:
                self.assertEqual((), self.books().over)
                codes = {code for code, _, _ in self.audit()}
                self.assertEqual({finding.TOO_MANY_ON_HOST}, codes)
                return
            self.delete_all()
        self.fail("the storm proves nothing: the filter alone kept the cap")
