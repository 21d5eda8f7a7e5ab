# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.cloud import flavors
from nova_perfvm.cloud.errors import CloudError
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy import loader

HIGH = generate_flavors(loader.load())[0]


class FakeNova:
    """Flavors, and a nova-api that can refuse their extra specs.

    A real one answers in the functional tests.
    """

    def __init__(self):
        self.flavors = {}
        self.refuses = False

    def nova_list(self, path, key):
        return iter(list(self.flavors.values()) if key == "flavors" else [])

    def placement(self, method, path, body=None, key=""):
        if path.startswith("/traits"):
            return ["CUSTOM_PERFVM_HIGH_PERFORMANCE"]
        return [{"name": "CUSTOM_PERFVM_SLOT"}]

    def nova(self, method, path, body=None, key=""):
        if method == "DELETE":
            del self.flavors[path.rpartition("/")[2]]
            return None
        if path.endswith("/os-extra_specs"):
            if self.refuses:
                raise CloudError("Nova: POST: 400: no such class", 400)
            self.flavors[path.split("/")[2]]["extra_specs"].update(body["extra_specs"])
            return None
        asked = body["flavor"]
        made = dict(asked, id="new", swap="", extra_specs={})
        made["OS-FLV-EXT-DATA:ephemeral"] = 0
        made["os-flavor-access:is_public"] = True
        self.flavors[made["id"]] = made
        return made


class RefusedTest(testtools.TestCase):
    def test_no_flavor_stays_without_its_extra_specs(self):
        nova = FakeNova()
        nova.refuses = True
        plan = flavors.plan(nova, [HIGH])
        (failed,) = flavors.sync(nova, plan.changes, lambda _change: None)
        self.assertIn("does nova-api have this policy", failed.why)
        self.assertEqual({}, nova.flavors)
