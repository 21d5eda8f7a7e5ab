# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.cloud import flavors, sync
from nova_perfvm.cloud.errors import CloudError
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy import loader

POLICY = loader.load()
HIGH = generate_flavors(POLICY)[0]


class FakeNova:
    """Refuses all extra specs; a real nova-api answers in the functional tests."""

    def __init__(self, error=None):
        self.flavors = set()
        self.error = error or CloudError("Nova: POST: 400: no such class", 400)

    def nova_list(self, path, key):
        return iter(())

    def placement(self, method, path, body=None, key=""):
        return []

    def nova(self, method, path, body=None, key=""):
        if method == "DELETE":
            self.flavors.remove(path.rpartition("/")[2])
            return None
        if path.endswith("/os-extra_specs"):
            raise self.error
        self.flavors.add("new")
        return {"id": "new"}


class RefusedTest(testtools.TestCase):
    def test_no_flavor_stays_without_its_extra_specs(self):
        nova = FakeNova()
        plan = flavors.plan(nova, [HIGH], policy=POLICY)
        (failed,) = sync.make(nova, flavors.apply, plan.changes)
        self.assertIn("does nova-api have this policy", failed.why)
        self.assertEqual(set(), nova.flavors)

    def test_nor_after_ctrl_c(self):
        nova = FakeNova(KeyboardInterrupt())
        plan = flavors.plan(nova, [HIGH], policy=POLICY)
        try:
            sync.make(nova, flavors.apply, plan.changes)
        except KeyboardInterrupt:
            self.assertEqual(set(), nova.flavors)
        else:
            self.fail("not interrupted")
