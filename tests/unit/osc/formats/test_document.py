# SPDX-License-Identifier: Apache-2.0

import json

import testtools

from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.osc.formats import document
from nova_perfvm.policy import loader

POLICY = loader.load()


class FlavorTest(testtools.TestCase):
    def test_names_units_and_texts(self):
        (flavor, *_) = generate_flavors(POLICY)
        (found,) = document.flavor_documents([flavor])
        self.assertEqual(
            {
                "name": "hp.20c.64g",
                "class": "high-performance",
                "vcpus": 20,
                "memory_mb": 65536,
                "root_gb": 0,
                "extra_specs": flavor.extra_specs,
            },
            found,
        )
        self.assertEqual([found], json.loads(document.as_json([found])))
