# SPDX-License-Identifier: Apache-2.0
"""A scheduler hint with which anyone calls a request a rebuild (CVE-2026-46448).

Nova then asks Placement for nothing, and most filters for nothing either.
"""

import fixtures
from nova.compute import api
from nova.scheduler import utils as scheduler_utils

from nova_perfvm.generate.flavors import generate_flavors
from tests.cloud import DEFAULT_FILTERS
from tests.embedded import FILTERS_WITHOUT_PERFVM, ActionFailedError
from tests.functional.elastic import ElasticTest
from tests.functional.test_elastic import GENERAL, HIGH, ElasticCase

HINT = {"_nova_check_type": "rebuild"}


class AcceptedHints(fixtures.Fixture):
    """Nova without its fix of CVE-2026-46448.

    The fix is one statement in API.create(), which drops a user's hints that
    begin with _nova.  Here they are put back where create() hands them on.
    """

    def _setUp(self):  # noqa: N802
        create, build = api.API.create, scheduler_utils.build_filter_properties

        def unfixed(this, *args, scheduler_hints=None, **options):
            def with_all_hints(_, *others):
                return build(scheduler_hints, *others)

            with fixtures.MonkeyPatch(
                "nova.scheduler.utils.build_filter_properties", with_all_hints
            ):
                return create(this, *args, scheduler_hints=scheduler_hints, **options)

        self.useFixture(fixtures.MonkeyPatch("nova.compute.api.API.create", unfixed))


class TestRebuildHint(ElasticCase):
    FILTERS = DEFAULT_FILTERS

    def setUp(self):
        super().setUp()
        self.useFixture(AcceptedHints())
        self.start("e1")

    def refused(self, flavor, **options):
        """Look that a hinted request is refused for its hint."""
        server = self.boot_refused(flavor, hints=HINT, **options)
        self.assert_reason(server, "request.not_a_rebuild")

    def test_on_any_host(self):
        """It would run without an allocation, and others would come beside it."""
        self.refused(HIGH)
        self.refused(GENERAL)
        server = self.boot(GENERAL)
        self.refused(HIGH)
        self.servers.delete(server)
        self.boot(HIGH)
        self.refused(GENERAL)
        self.refused(GENERAL, az="nova:e1")
        self.assertEqual([1000], self.taken("e1"))

    def test_true_rebuilds(self):
        """They are judged by their image, whether the host is full or not."""
        (generated,) = (f for f in generate_flavors(self.policy) if f.name == HIGH)
        specs = dict(generated.extra_specs)
        del specs["hw:vif_multiqueue_enabled"]
        flavor = self.cloud.create_flavor("by-image", 20, 65536, 0, specs)
        image = self.cloud.create_image(hw_vif_multiqueue_enabled="true")
        servers = [self.boot(HIGH), self.boot(flavor, image=image)]
        for server in servers:
            self.assertEqual("e1", self.servers.rebuild(server, image).host)
        self.assert_apart(*servers)
        self.assertEqual({"a": [1000], "b": [1000]}, self.units("e1"))

        plain = self.cloud.create_image()
        error = self.assertRaises(
            ActionFailedError, self.servers.rebuild, servers[1], plain
        )
        self.assertIn("No valid host", error.detail)
        self.assert_reason(servers[1], "request.no_multiqueue")


class TestHintFromBefore(ElasticCase):
    """The hint of a server's creation is in the requests of all its moves."""

    FILTERS = FILTERS_WITHOUT_PERFVM

    def test_moves(self):
        with AcceptedHints():
            self.start("e1")
            server = self.boot(GENERAL, hints=HINT)
        self.start("e2")
        self.cloud.restart_scheduler(DEFAULT_FILTERS)
        self.boot(HIGH, host="e2")
        for move in (self.servers.live_migrate, self.servers.cold_migrate):
            self.assertRaises(ActionFailedError, move, server)
            self.assert_reason(server, "request.not_a_rebuild")
        self.cloud.fail_host("e1")
        self.assertRaises(ActionFailedError, self.servers.evacuate, server)
        self.assertEqual([1000], self.taken("e2"))


class TestUnlabelledHost(ElasticTest):
    """The policy manages labelled hosts alone, and no host has a label."""

    def write_policy(self, **changes):
        return super().write_policy(managed_hosts="labelled", **changes)

    def test_an_elastic_host_is_closed_to_what_claims_nothing(self):
        self.useFixture(AcceptedHints())
        self.cloud.start_host("e1")
        self.enroll("e1")
        # Forced, as the filter lets none of its class to hosts without a label.
        self.boot(HIGH, az="nova:e1")

        server = self.boot_refused(GENERAL, hints=HINT)

        self.assert_reason(server, "request.not_a_rebuild")
        # Which of the two is Placement's choice.
        self.assertEqual([[], [1000]], sorted(self.units("e1").values()))
