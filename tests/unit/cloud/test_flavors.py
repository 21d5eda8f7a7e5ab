# SPDX-License-Identifier: Apache-2.0

import copy

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

    def add(self, flavor, **changes):
        entry = {
            "id": "7",
            "name": flavor.name,
            "vcpus": flavor.vcpus,
            "ram": flavor.memory_mb,
            "disk": flavor.root_gb,
            "OS-FLV-EXT-DATA:ephemeral": 0,
            "swap": "",
            "os-flavor-access:is_public": True,
            "description": None,
            "extra_specs": dict(flavor.extra_specs),
        }
        self.flavors["7"] = entry | changes

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
        made = dict(asked, id=asked.get("id", "new"), swap="", extra_specs={})
        made["OS-FLV-EXT-DATA:ephemeral"] = 0
        made["os-flavor-access:is_public"] = True
        self.flavors[made["id"]] = made
        return made


class RecreateTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.nova = FakeNova()
        self.nova.add(HIGH, vcpus=16)

    def sync(self):
        told = []
        self.failed = flavors.sync(
            self.nova, [HIGH], lambda change: told.append(change.action), recreate=True
        )
        return told

    def test_the_id_stays(self):
        self.assertEqual(["set", "delete", "create"], self.sync())
        (found,) = flavors.flavors(self.nova)
        self.assertEqual(
            ("7", 20, HIGH.extra_specs), (found.id, found.vcpus, found.extra_specs)
        )
        self.assertEqual([], self.sync())

    def test_a_refusal_comes_while_the_flavor_exists(self):
        self.nova.refuses = True
        before = copy.deepcopy(self.nova.flavors)
        self.assertEqual(["set"], self.sync())
        (failed,) = self.failed
        self.assertIn("does nova-api have this policy", failed.why)
        self.assertEqual(before, self.nova.flavors)
