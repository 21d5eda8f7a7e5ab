# SPDX-License-Identifier: Apache-2.0

import types

import testtools

from nova_perfvm.changes import steps as do
from nova_perfvm.cloud import answers, candidates, flavors, images, live_hosts
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.apply import Applier
from nova_perfvm.cloud.errors import CloudError, NotThereError, openstack_errors
from nova_perfvm.cloud.rollback import plan_rollback
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.facts.requests import request_for
from nova_perfvm.facts.snapshot import Flavor
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy import loader
from tests.unit.cloud.fake_api import answer

POLICY = loader.load()
DESIRED = generate_flavors(POLICY)[:1]
SETTINGS = settings_for(POLICY)
REQUEST = request_for(Flavor("f", "f", 1, 1024, 0, {}))
CHILD = do.CreateChild(parent="root", uuid="child", name="h_perfvm_a")


class HalfService:
    """Has one of everything, and says nothing of it."""

    COLLECTIONS = ("aggregates", "flavors", "hypervisors", "images", "resource_classes")
    COLLECTIONS += ("resource_providers", "servers", "services")

    def request(self, url, method, **kwargs):
        document = {name: [{}] for name in self.COLLECTIONS}
        return answer(body=document | {"flavor": {}, "traits": []})


class UnderstoodTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        half = HalfService()
        self.api = API(
            types.SimpleNamespace(
                compute=half, image=half, placement=half, current_project_id="p"
            )
        )

    def test_whoever_reads_answers(self):
        for name, read in (
            ("read_host", lambda api: live_hosts.read_host(api, "h")),
            ("service_host", lambda api: live_hosts.service_host(api, "h")),
            ("detached_children", live_hosts.detached_children),
            ("aggregates", answers.aggregates),
            ("names", answers.names),
            ("offered", lambda api: candidates.offered(api, REQUEST, SETTINGS, ())),
            ("flavors.flavors", flavors.flavors),
            ("flavors.plan", lambda api: flavors.plan(api, DESIRED, policy=POLICY)),
            ("images.find_image", lambda api: images.find_image(api, "i")),
            ("images.plan", lambda api: images.plan(api, {"t": {}}, "t")),
            ("apply", lambda api: Applier(api).apply(CHILD)),
            ("rollback", plan_rollback),
            ("snapshot", read_snapshot),
        ):
            self.assert_understood(name, read, self.api)

    def test_the_answer_to_a_change(self):
        # No flavors and no servers, so that there is something to create.
        self.api.nova_list = lambda path, key: iter(())
        self.api.placement = lambda method, path, body=None, key="": []
        plan = flavors.plan(self.api, DESIRED, policy=POLICY)
        change = plan.changes[-1]
        self.assert_understood("apply", flavors.apply, self.api, change)

    def assert_understood(self, name, read, *arguments):
        exc = self.assertRaises(CloudError, read, *arguments)
        self.assertIn("is not complete (KeyError", str(exc), name)
        self.assertIn("is a proxy between?", str(exc))

    def test_other_errors_are_let_through(self):
        def fail(error):
            with openstack_errors():
                raise error

        gone = NotThereError("404: no such", 404)
        self.assertIs(gone, self.assertRaises(NotThereError, fail, gone))
        self.assertRaises(ZeroDivisionError, fail, ZeroDivisionError())
