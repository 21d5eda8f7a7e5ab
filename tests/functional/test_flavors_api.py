# SPDX-License-Identifier: Apache-2.0
"""The generated flavors and images, and Nova's real API."""

from nova.tests.functional.api.client import OpenStackApiException

from nova_perfvm.generate.flavors import generate_flavors, generate_image_properties
from tests.functional import base


class TestGeneratedFlavors(base.FunctionalTest):
    FLAVORS = ()

    def assert_refused_by_api(self, call, *args, **kwargs):
        """Look that the API answers 400; return what it said."""
        error = self.assertRaises(OpenStackApiException, call, *args, **kwargs)
        self.assertEqual(400, error.response.status_code)
        return error.response.text

    def test_every_flavor_passes_and_one_of_each_class_boots(self):
        # The newest microversion validates extra specs, as from 2.86 on.
        self.assertEqual("latest", self.cloud.api.microversion)
        self.cloud.start_host("hp1", dedicated="0-39")
        self.cloud.start_host("general1", shared="0-39")
        flavors = generate_flavors(self.policy)
        self.create_flavors(*(flavor.name for flavor in flavors))
        image = self.cloud.create_image(**generate_image_properties(self.policy))

        for flavor in flavors:
            shown = self.cloud.api.get_flavor(flavor.name)
            self.assertEqual(
                (flavor.vcpus, flavor.memory_mb, flavor.root_gb),
                (shown["vcpus"], shown["ram"], shown["disk"]),
            )
            self.assertEqual(dict(flavor.extra_specs), shown["extra_specs"])
        self.assert_high_performance(self.boot(base.HP_64, image=image))
        self.assert_general(self.boot(base.GENERAL_2, image=image))

        # An image does not smuggle pinning into a general flavor.
        image = self.cloud.create_image(hw_cpu_policy="dedicated")
        said = self.assert_refused_by_api(self.cloud.boot, base.GENERAL_2, image=image)
        self.assertIn("CPU pinning", said)

    def test_unknown_keys_and_classes_are_refused(self):
        for key, value in (
            ("perfvm:clas", "high-performance"),
            ("perfvm:class", "high-perfomance"),
        ):
            said = self.assert_refused_by_api(
                self.cloud.create_flavor, value, 20, 65536, extra_specs={key: value}
            )
            self.assertIn(key if key == "perfvm:clas" else value, said)

    def test_member_cannot_boot_a_volume_flavor_from_an_image(self):
        # Nova's own rule for flavors without a root disk; it must stay so.
        self.create_flavors(base.HP_64)
        server = {
            "name": "vm",
            "flavorRef": base.HP_64,
            "imageRef": self.cloud.image,
            "networks": "none",
        }

        error = self.assertRaises(
            OpenStackApiException, self.cloud.member_api.post_server, {"server": server}
        )

        self.assertEqual(403, error.response.status_code)
        self.assertIn("Only volume-backed servers are allowed", error.response.text)
