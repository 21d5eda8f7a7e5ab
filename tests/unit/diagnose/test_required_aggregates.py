# SPDX-License-Identifier: Apache-2.0
"""Hosts outside of the aggregates that Nova asks for, beside Nova's prefilters."""

import collections
import dataclasses
import random
from unittest import mock

import testtools
from nova import exception, objects
from nova.conf import CONF
from nova.scheduler import request_filter
from oslo_config import fixture as config_fixture

from nova_perfvm import constants as const
from nova_perfvm.diagnose.verdicts import judge, settings_for
from nova_perfvm.facts.host_view import view_of
from nova_perfvm.facts.requests import request_for
from nova_perfvm.facts.snapshot import Aggregate
from tests.unit.facts.snapshot.clouds import GENERAL, POLICY, Cloud

CODES = {const.PLACEMENT_TENANT}
METADATA = {
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

    def test_random_aggregates(self):
        rng, found = random.Random(3), collections.Counter()
        for number in range(600):
            cloud, options = self.cloud(rng), {}
            for name in OPTIONS:
                value = rng.random() < 0.6
                self.config.config(group="scheduler", **{name: value})
                options["scheduler", name] = str(value)
            snapshot = cloud.snapshot()
            request = dataclasses.replace(
                request_for(cloud.flavors[GENERAL], volume_backed=True),
                project=rng.choice(("p1", "p2", "p3")),
            )
            view = view_of(snapshot, "h")
            verdict = judge(POLICY, request, view, settings_for(POLICY, options))
            ours = CODES.isdisjoint(reason.code for reason in verdict.before)
            theirs = self.asks_for(request, snapshot.aggregates, view.root)
            case = number, options, request.project, snapshot.aggregates, view.root
            self.assertEqual(theirs, ours, case)
            found[request.project, theirs] += 1
        for project in ("p1", "p2", "p3"):
            for taken in (True, False):
                self.assertGreater(found[project, taken], 20, found)

    def cloud(self, rng):
        """Return a cloud of one host, in different aggregates of Nova and Placement."""
        cloud = Cloud()
        cloud.add_host("h", "shared")
        cloud.parts["aggregates"] = tuple(
            Aggregate(
                number,
                f"u{number}",
                f"a{number}",
                {k: rng.choice(v) for k, v in METADATA.items() if rng.random() < 0.4},
                frozenset({"h"} if rng.random() < 0.4 else ()),
            )
            for number in range(rng.randint(0, 3))
        )
        uuids = [a.uuid for a in cloud.parts["aggregates"] if rng.random() < 0.4]
        cloud.change_provider("h", aggregates=frozenset(uuids))
        return cloud

    def asks_for(self, request, aggregates, root):
        """Return whether Nova's prefilters let Placement offer a root provider."""

        def by_metadata(_context, key=None, value=None):
            return [
                objects.Aggregate(uuid=a.uuid, metadata=dict(a.metadata))
                for a in aggregates
                if any(v == value and key in {None, k} for k, v in a.metadata.items())
            ]

        spec = objects.RequestSpec(project_id=request.project)
        of_nova = objects.AggregateList
        with mock.patch.object(of_nova, "get_by_metadata", by_metadata):
            try:
                request_filter.require_tenant_aggregate(None, spec)
            except exception.RequestFilterFailed:
                return False
        if "requested_destination" not in spec:
            return True
        asked = spec.requested_destination.aggregates or ()
        return all(root.aggregates & {*ored.split(",")} for ored in asked)
