# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.cloud import answers, images
from nova_perfvm.cloud.errors import CloudError
from nova_perfvm.facts.snapshot import Image


class FakeAPI:
    """Has images, of which all that are asked for by name or tag come."""

    def __init__(self, *hidden):
        self.listed = [
            {"id": str(number), "name": "debian", "tags": ["t"]}
            | {"os_hidden": each, "visibility": "public"}
            for number, each in enumerate(hidden)
        ]

    def project(self):
        return "p"

    def images(self, **query):
        return iter(self.listed)


class FindTest(testtools.TestCase):
    def test_hidden_ones_give_way(self):
        for hidden, expected in (
            ([True], "0"),
            ([False], "0"),
            ([True, False], "1"),
            ([True, False, True], "1"),
        ):
            with self.subTest(hidden):
                self.assertEqual(
                    expected, images.find_image(FakeAPI(*hidden), "debian").id
                )

    def test_none_or_several(self):
        for hidden, words in (
            ([], "no image debian: see openstack image list"),
            ([True, True], "2 images are called debian: name one by ID: 0, 1"),
            ([False, True, False], "2 images are called debian: name one by ID: 0, 2"),
        ):
            with self.subTest(hidden):
                api = FakeAPI(*hidden)
                exc = self.assertRaises(CloudError, images.find_image, api, "debian")
                self.assertIn(words, str(exc))

    def test_tenants_may_take_any_name(self):
        api = FakeAPI(False, False, True, True)
        for number, visibility in ((0, "community"), (2, "private")):
            api.listed[number] |= {"visibility": visibility, "owner": "t"}
        self.assertEqual("1", images.find_image(api, "debian").id)
        # Also if the administrators' is hidden.
        del api.listed[1]
        self.assertEqual("3", images.find_image(api, "debian").id)
        del api.listed[2]
        self.assertEqual("0", images.find_image(api, "debian").id)

    def test_tags_are_found_on_all(self):
        found = images.tagged_images(FakeAPI(False, True), "t")
        self.assertEqual(["0", "1"], [image.id for image in found])

    def test_snapshots_tell_them_apart(self):
        found = answers.images(FakeAPI(False, True))
        self.assertEqual([False, True], [image.hidden for image in found])


class ImageTest(testtools.TestCase):
    def test_glances_own_members_are_no_properties(self):
        document = {
            "id": "1",
            "name": None,
            "status": "active",
            "stores": "file",
            "owner": "me",
            "min_ram": 0,
            "visibility": "private",
            "os_distro": "debian",
            "tags": ["a"],
        }
        self.assertEqual(
            Image(
                "1",
                "",
                {"os_distro": "debian"},
                tags=frozenset({"a"}),
                owner="me",
                visibility="private",
            ),
            answers.image(document),
        )
