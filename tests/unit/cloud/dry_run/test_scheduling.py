# SPDX-License-Identifier: Apache-2.0

import json

import fixtures
import requests
import testtools
from keystoneauth1 import exceptions as ksa_exceptions
from nova import context, objects
from nova.conf import CONF
from nova.scheduler import host_manager, request_filter
from nova.scheduler.client import report
from oslo_config import fixture as config_fixture
from oslo_utils.fixture import uuidsentinel

from nova_perfvm.cloud.dry_run.candidates import NoCandidatesError
from nova_perfvm.cloud.dry_run.request import Asked
from nova_perfvm.cloud.dry_run.scheduling import DryRun
from nova_perfvm.facts.dry_run import NO_STATE
from tests.unit.scheduler import states


class Placement:
    """An adapter of Nova's client that has one answer to all queries.

    :param given: the answer, or the error of a query
    """

    def __init__(self, given):
        self._given = given

    def get(self, _url, **_options):
        if isinstance(self._given, Exception):
            raise self._given
        return self._given


def answer(status, document):
    found = requests.Response()
    found.status_code = status
    found._content = json.dumps(document).encode()
    return found


def refusal(status, detail):
    return answer(status, {"errors": [{"status": status, "detail": detail}]})


class DryRunCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        # They read Nova's databases.
        for name in ("refresh_cells_caches", "_init_aggregates"):
            self.useFixture(
                fixtures.MockPatchObject(host_manager.HostManager, name, autospec=True)
            )
        self.useFixture(
            fixtures.MockPatchObject(request_filter, "ALL_REQUEST_FILTERS", [])
        )
        self.useFixture(fixtures.FakeLogger())

    def judged(self, given, hosts=()):
        """Return what the dry run makes of a small server and an answer of Placement.

        :param hosts: the HostStates of the compute nodes
        """
        client = report.SchedulerReportClient(adapter=Placement(given))
        self.useFixture(
            fixtures.MockPatchObject(report, "report_client_singleton", lambda: client)
        )
        dry = DryRun()
        dry._hosts.get_host_states_by_uuids = lambda *_: hosts
        spec = states.request_spec(**states.GENERAL)
        for name in (
            *("availability_zone", "requested_destination", "instance_group"),
            *("force_hosts", "force_nodes", "ignore_hosts", "limits", "project_id"),
        ):
            setattr(spec, name, None)
        spec.request_level_params = objects.RequestLevelParams()
        return dry.judge(Asked(context.get_admin_context(), spec, "drawn"))


class PlacementTest(DryRunCase):
    def test_no_answer_is_no_answer_without_hosts(self):
        """Nova's client returns nothing, and tells only its log why."""
        for given, words in (
            *(
                (error("no luck"), f"cannot be asked for hosts ({error.__name__}: no")
                for error in (
                    # Those that safe_connect() catches, and one that it does not.
                    *(ksa_exceptions.ConnectFailure, ksa_exceptions.Unauthorized),
                    *(ksa_exceptions.EndpointNotFound, ksa_exceptions.RequestTimeout),
                )
            ),
            (refusal(503, "down\nfor now"), "hosts with 503 (down for now): see the"),
            (refusal(403, "not yours"), "hosts with 403 (not yours): see the log"),
        ):
            exc = self.assertRaises(NoCandidatesError, self.judged, given)
            self.assertIn(words, str(exc))
            self.assertNotIn("\n", str(exc))

    def test_a_query_that_placement_refuses(self):
        """nova-scheduler finds no host for the server, whatever is free."""
        found = self.judged(refusal(400, "No such trait(s): CUSTOM_X."))
        self.assertEqual({}, found.offered)
        note = "Placement refuses the query: No such trait(s): CUSTOM_X."
        self.assertEqual((note,), found.notes)

    def test_an_answer_without_hosts(self):
        found = self.judged(
            answer(200, {"allocation_requests": [], "provider_summaries": {}})
        )
        self.assertEqual(("", {}, ()), (found.refused, found.offered, found.notes))


class HostStatesTest(DryRunCase):
    def test_a_node_that_was_never_reported(self):
        """Nova's state of it has no UUID, and nothing to weigh."""
        self.useFixture(config_fixture.Config(CONF)).config(
            enabled_filters=["ImagePropertiesFilter"], group="filter_scheduler"
        )
        reported = states.host_state("hp1")
        new = host_manager.HostState("hp2", "hp2", uuidsentinel.cell)
        node = objects.ComputeNode(uuid=uuidsentinel.hp2, free_disk_gb=None)
        new.update(compute=node)
        self.assertIsNone(new.uuid)
        offered = (uuidsentinel.hp1, uuidsentinel.hp2)
        given = answer(
            200,
            {
                "allocation_requests": [
                    {"allocations": {uuid: {"resources": {"VCPU": 1}}}, "mappings": {}}
                    for uuid in offered
                ],
                "provider_summaries": {
                    uuid: {
                        "root_provider_uuid": uuid,
                        "resources": {"VCPU": {"capacity": 8, "used": 0}},
                    }
                    for uuid in offered
                },
            },
        )
        for hosts, placed in (([reported, new], ("hp1",)), ([new], ())):
            found = self.judged(given, hosts)
            passed = {uuidsentinel.hp1: ()} if placed else {}
            expected = dict.fromkeys(offered, (NO_STATE,)) | passed
            self.assertEqual(expected, found.offered)
            self.assertEqual(passed.keys(), dict(found.ranked).keys())
            self.assertEqual(placed, found.placed)
