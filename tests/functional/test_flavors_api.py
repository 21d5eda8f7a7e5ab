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

    def test_every_flavor_passes(self):
        # The newest microversion validates extra specs, as from 2.86 on.
        self.assertEqual("latest", self.cloud.api.microversion)
        flavors = generate_flavors(self.policy)
        self.assertTrue(flavors)

        self.create_flavors(*(flavor.name for flavor in flavors))

        for flavor in flavors:
            shown = self.cloud.api.get_flavor(flavor.name)
            self.assertEqual(
                (flavor.vcpus, flavor.memory_mb, flavor.root_gb),
                (shown["vcpus"], shown["ram"], shown["disk"]),
            )
            self.assertEqual(dict(flavor.extra_specs), shown["extra_specs"])

    def test_every_flavor_boots(self):
        self.cloud.start_host("hp1", dedicated="0-39")
        self.cloud.start_host("general1", shared="0-39")
        flavors = generate_flavors(self.policy)
        self.create_flavors(*(flavor.name for flavor in flavors))
        image = self.cloud.create_image(**generate_image_properties(self.policy))

        for flavor in flavors:
            server = self.boot(flavor.name, image=image)
            if flavor.class_name == "high-performance":
                self.assert_high_performance(server)
                self.servers.delete(server)
            else:
                self.assert_general(server)

    def test_image_cannot_smuggle_pinning_into_a_general_flavor(self):
        self.cloud.start_host("hp1", dedicated="0-39")
        self.create_flavors(base.GENERAL_2)
        image = self.cloud.create_image(hw_cpu_policy="dedicated")

        said = self.assert_refused_by_api(self.cloud.boot, base.GENERAL_2, image=image)

        self.assertIn("CPU pinning", said)

    def test_unknown_key_is_refused(self):
        said = self.assert_refused_by_api(
            self.cloud.create_flavor,
            "typo",
            20,
            65536,
            extra_specs={"perfvm:clas": "high-performance"},
        )

        self.assertIn("perfvm:clas", said)

    def test_unknown_class_is_refused(self):
        said = self.assert_refused_by_api(
            self.cloud.create_flavor,
            "typo",
            20,
            65536,
            extra_specs={"perfvm:class": "high-perfomance"},
        )

        self.assertIn("high-perfomance", said)

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
