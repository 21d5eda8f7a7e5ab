# SPDX-License-Identifier: Apache-2.0
"""Limits of other projects, which Keystone before 29 hides from a project's token."""

import openstack
import testtools
from keystoneauth1 import session

from nova_perfvm.cloud import limits
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError
from nova_perfvm.generate.limits import limits_of
from nova_perfvm.policy import loader
from tests.functional.client import Identity
from tests.functional.keystone import REGION, SERVICE, Keystone, KeystoneFixture

HIGH, SLOT = "high-performance", "class:CUSTOM_PERFVM_SLOT"
ROLE = "openstack role add --system all --user USER reader"


class HiddenLimitsTest(testtools.TestCase):
    """The administrator's token is of project `admin`; project `p` has a limit."""

    def setUp(self):
        super().setUp()
        self.keystone = self.useFixture(KeystoneFixture())
        slot = {"service_id": SERVICE, "region_id": REGION, "resource_name": SLOT}
        known = self.keystone.known
        known["projects"] += [{"id": "admin"}, {"id": "p"}]
        known["registered_limits"].append(slot | {"id": "r", "default_limit": 0})
        known["limits"].append(
            slot | {"id": "l", "project_id": "p", "resource_limit": 1}
        )
        auth = Identity("admin", "admin", "admin", {})
        connection = openstack.connection.Connection(
            session=session.Session(auth=auth),
            identity_endpoint_override=self.keystone.url,
        )
        self.api = API(connection)
        # No project has a VM.
        self.patch(self.api, "placement", lambda *_asked, **_key: {})

    def plan(self, default, projects):
        wanted = limits_of(loader.load(), default, projects)
        return limits.plan(self.api, wanted)

    def test_another_projects_limit_is_changed(self):
        (change,) = self.plan({}, {"p": {HIGH: 3}}).changes
        self.assertEqual(("set", 1), (change.action, change.before.value))
        limits.apply(self.api, change)
        self.assertEqual({(SLOT, "p"): 3}, self.keystone.values("limits"))

    def test_a_default_beside_another_projects_limit_is_refused(self):
        (refusal,) = self.plan({HIGH: 2}, {}).refusals
        self.assertIn("openstack limit delete l", refusal)

    def test_without_a_role_on_the_system(self):
        """Keystone refuses the change, and the remedy is the role."""
        Keystone.on_system = False
        for _name, default, projects, words in (
            ("a project's limit", {}, {"p": {HIGH: 3}}, "409"),
            ("the default", {HIGH: 2}, {}, "403"),
        ):
            (change,) = self.plan(default, projects).changes
            exc = self.assertRaises(CloudError, limits.apply, self.api, change)
            self.assertIn(words, str(exc))
            self.assertIn(ROLE, str(exc))
            self.assertNotIn("--os-cloud", str(exc))
        # Done as the remedy says.
        Keystone.on_system = True
        self.test_another_projects_limit_is_changed()
