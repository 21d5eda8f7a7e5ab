# SPDX-License-Identifier: Apache-2.0
"""Hosts outside of the aggregates that Nova asks for, beside Nova's prefilters."""

import collections
import dataclasses
import logging
import random
from unittest import mock

import fixtures
import testtools
from nova import exception, objects
from nova.conf import CONF
from nova.scheduler import request_filter
from oslo_config import fixture as config_fixture
from oslo_utils.fixture import uuidsentinel

from nova_perfvm import constants as const
from nova_perfvm.cloud import candidates
from nova_perfvm.diagnose.moves import zone_asked
from nova_perfvm.diagnose.verdicts import judge, required_aggregates, settings_for
from nova_perfvm.diagnose.words import words
from nova_perfvm.facts.host_view import view_of
from nova_perfvm.facts.requests import request_for
from nova_perfvm.facts.snapshot import Aggregate
from tests.unit.facts.snapshot.clouds import GENERAL, POLICY, Cloud

CODES = {const.NOVA_AVAILABILITY_ZONE, const.PLACEMENT_TENANT}
METADATA = {
    "availability_zone": ("east", "west"),
    "filter_tenant_id": ("p1", "p2"),
    "filter_tenant_id_more": ("p1", "p1,p2"),
    "owner": ("p1", "p2"),
}
OPTIONS = (
    "limit_tenants_to_placement_aggregate",
    "placement_aggregate_required_for_tenants",
)


class AsNovaTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        objects.register_all()
        self.config = self.useFixture(config_fixture.Config(CONF))
        # Of projects without aggregates.
        self.useFixture(fixtures.FakeLogger(level=logging.CRITICAL))

    def test_random_aggregates(self):
        rng, found = random.Random(3), collections.Counter()
        for number in range(1000):
            cloud, options = self.cloud(rng), {}
            for name in OPTIONS:
                value = rng.random() < 0.6
                self.config.config(group="scheduler", **{name: value})
                options["scheduler", name] = str(value)
            snapshot = cloud.snapshot()
            zone = rng.choice(("", "", "east", "west", "of no aggregate"))
            request = dataclasses.replace(
                request_for(cloud.flavors[GENERAL], volume_backed=True),
                project=rng.choice(("p1", "p2", "p3")),
                availability_zone=zone_asked(snapshot, zone),
            )
            view = view_of(snapshot, "h")
            settings = settings_for(POLICY, options)
            verdict = judge(POLICY, request, view, settings)
            ours = CODES.isdisjoint(reason.code for reason in verdict.before)
            asked = self.asked_of_nova(request, zone, snapshot.aggregates)
            here = view.root.aggregates
            theirs = asked is not None and all(here & {*one} for one in asked)
            case = number, options, request, zone, snapshot.aggregates, view.root
            self.assertEqual(theirs, ours, case)
            found[request.project, theirs] += 1
            found[request.availability_zone, theirs] += 1
            required = required_aggregates(request, options, snapshot.aggregates)
            query = candidates._query(request.demand, settings, (), required)
            if asked is not None:
                members = sorted(value for key, value in query if key == "member_of")
                self.assertEqual([f"in:{','.join(one)}" for one in asked], members)
        for asked in ("p1", "p2", "p3", "east", "west", ""):
            for taken in (True, False):
                self.assertGreater(found[asked, taken], 20, found)

    def cloud(self, rng):
        """Return a cloud of one host, in different aggregates of Nova and Placement."""
        cloud = Cloud()
        cloud.add_host("h", "shared")
        cloud.parts["aggregates"] = tuple(
            Aggregate(
                number,
                getattr(uuidsentinel, f"u{number}"),
                f"a{number}",
                {k: rng.choice(v) for k, v in METADATA.items() if rng.random() < 0.5},
                frozenset({"h"} if rng.random() < 0.4 else ()),
            )
            for number in range(rng.randint(0, 3))
        )
        uuids = [a.uuid for a in cloud.parts["aggregates"] if rng.random() < 0.6]
        cloud.change_provider("h", aggregates=frozenset(uuids))
        return cloud

    def asked_of_nova(self, request, zone, aggregates):
        """Return lists of aggregates: a root provider has to be in one of each.

        None where Nova asks for no provider at all.
        """

        def by_metadata(_context, key=None, value=None):
            return [
                objects.Aggregate(uuid=a.uuid, metadata=dict(a.metadata))
                for a in aggregates
                if any(v == value and key in {None, k} for k, v in a.metadata.items())
            ]

        spec = objects.RequestSpec(
            project_id=request.project, availability_zone=zone or None
        )
        of_nova = objects.AggregateList
        with mock.patch.object(of_nova, "get_by_metadata", by_metadata):
            try:
                request_filter.require_tenant_aggregate(None, spec)
                request_filter.map_az_to_placement_aggregate(None, spec)
            except exception.RequestFilterFailed:
                return None
        if "requested_destination" not in spec:
            return []
        asked = spec.requested_destination.aggregates or ()
        return sorted(sorted(ored.split(",")) for ored in asked)


class ZoneTest(testtools.TestCase):
    def test_each_source(self):
        """What Placement has counts, then what Nova has."""
        az1 = Aggregate(1, "u", "az1", {"availability_zone": "az1"}, frozenset({"h"}))
        no_host = dataclasses.replace(az1, hosts=frozenset())
        both = {"aggregates": frozenset({"u"})}
        lacks = (
            "Placement has the host in no aggregate of zone az1: "
            "nova-manage placement sync_aggregates"
        )
        other = "the host is in zone nova, az1 is asked for"
        for name, zone, aggregates, changes, expected in (
            ("both", "az1", (az1,), both, ""),
            ("Nova alone", "az1", (az1,), {}, lacks),
            ("Placement alone", "nova", (no_host,), both, ""),
            ("neither", "nova", (no_host,), {}, other),
            ("unknown aggregates", "az1", (), {}, ""),
            ("unknown aggregates, another zone", "nova", (), {}, other),
        ):
            cloud = Cloud()
            cloud.add_host("h", "shared")
            cloud.hosts["h"] = dataclasses.replace(
                cloud.hosts["h"], availability_zone=zone
            )
            cloud.parts["aggregates"] = aggregates
            cloud.change_provider("h", **changes)
            request = request_for(cloud.flavors[GENERAL], volume_backed=True)
            request = dataclasses.replace(request, availability_zone="az1")
            view = view_of(cloud.snapshot(), "h")
            verdict = judge(POLICY, request, view, settings_for(POLICY))
            said = "".join(map(words, verdict.before))
            self.assertEqual(expected, said, name)
