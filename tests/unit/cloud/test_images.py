# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.cloud import answers, images
from nova_perfvm.cloud.errors import CloudError
from nova_perfvm.facts.snapshot import Image
from tests.unit.cloud.fake_api import FakeAPI

HIDDEN = {"os_hidden": True}
COMMUNITY = {"owner": "t", "visibility": "community"}
PRIVATE = {"owner": "t", "visibility": "private"}


def having(*members):
    """Return a cloud with images of one name."""
    api = FakeAPI()
    api.glance = [
        {"id": str(number), "name": "debian", "visibility": "public"} | own
        for number, own in enumerate(members)
    ]
    return api


class FindTest(testtools.TestCase):
    def test_which_of_one_name(self):
        """Hidden ones give way, and those of tenants, who may take any name."""
        for found, expected in (
            ([HIDDEN], "0"),
            ([HIDDEN, {}], "1"),
            ([COMMUNITY, {}, PRIVATE | HIDDEN, HIDDEN], "1"),
            ([COMMUNITY, PRIVATE | HIDDEN, HIDDEN], "2"),
            ([COMMUNITY, PRIVATE | HIDDEN], "0"),
        ):
            api = having(*found)
            self.assertEqual(expected, images.find_image(api, "debian").id, found)
        for found, words in (
            ([], "no image debian: see openstack image list"),
            ([HIDDEN] * 2, "2 images are called debian: name one by ID: 0, 1"),
            ([{}, HIDDEN, {}], "2 images are called debian: name one by ID: 0, 2"),
        ):
            api = having(*found)
            exc = self.assertRaises(CloudError, images.find_image, api, "debian")
            self.assertIn(words, str(exc))


class ImageTest(testtools.TestCase):
    def test_glances_own_members_are_no_properties(self):
        own = {"status": "active", "stores": "file", "min_ram": 0}
        kept = {"owner": "me", "visibility": "private"}
        document = {"id": "1", "name": None, "os_distro": "debian", "tags": ["a"]}
        self.assertEqual(
            Image("1", "", {"os_distro": "debian"}, tags=frozenset({"a"}), **kept),
            answers.image(document | own | kept),
        )
