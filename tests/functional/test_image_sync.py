# SPDX-License-Identifier: Apache-2.0
"""Image sync by the real client and SDK, against what stands for Glance."""

import uuid

import fixtures
import openstack
import testtools
from keystoneauth1 import session

from nova_perfvm.changes.images import RECORD, TAG
from nova_perfvm.cloud import images as cloud_images
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError
from nova_perfvm.generate.flavors import generate_image_properties
from nova_perfvm.policy import loader
from tests.functional.client import ClientMixin, Identity
from tests.functional.glance import Glance, GlanceFixture

PROJECT = "p"
PROPERTIES = generate_image_properties(loader.load())


class Stubborn(dict):
    """An image whose owner undoes each change at once."""

    def clear(self):
        """Keep all."""

    def update(self, *_changed):
        """Change nothing."""


class ImageSyncTest(ClientMixin, testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.glance = self.useFixture(GlanceFixture())
        self.add = self.glance.add
        # There is no Nova here, which keeps the policy (test_policy_commands).
        for name in (
            "cloud.policy_record.read",
            "osc.recording.RecordingCommand.record_policy",
        ):
            patch = fixtures.MonkeyPatch(
                f"nova_perfvm.{name}", lambda *_arguments: None
            )
            self.useFixture(patch)

    def connection(self, user="admin", roles="admin"):
        return openstack.connection.Connection(
            session=session.Session(auth=Identity(user, PROJECT, roles, {})),
            image_endpoint_override=self.glance.url,
        )

    def sync(self, *arguments):
        """Run it; give {image: (action, details)} and what it said."""
        status, rows, self.said = self.run_json("image", "sync", *arguments)
        self.assertEqual(0, status, self.said)
        return {row["Name"]: (row["Action"], row["Details"]) for row in rows}

    def properties(self, image):
        return {key: value for key, value in image.items() if key.startswith("hw_")}

    def test_named_once_and_kept_since(self):
        debian = self.add(hw_vif_model="e1000", hw_machine_type="q35")
        other = dict(self.add("other", hw_disk_bus="ide"))

        self.assertEqual("set", self.sync("debian", "--dry-run")["debian"][0])
        self.assert_command(1, "add --yes", "image", "sync", "debian")
        self.assertEqual(0, Glance.patches)

        self.assertEqual("set", self.sync("debian", "--yes")["debian"][0])
        self.assertEqual(
            PROPERTIES | {"hw_machine_type": "q35"}, self.properties(debian)
        )
        self.assertEqual([TAG], debian["tags"])
        self.assertEqual("leave", self.sync("--yes")["debian"][0])
        self.assertEqual("nothing to do\n", self.said)
        self.assertEqual(1, Glance.patches)

        debian["hw_disk_bus"] = "ide"
        found = self.sync("--yes")
        self.assertEqual({"debian": ("set", "hw_disk_bus=virtio (was ide)")}, found)
        self.assertEqual(other, Glance.images[other["id"]])

    def test_classes_and_ids(self):
        high = self.add("high")
        looks = self.add(str(uuid.uuid4()))
        self.sync("--yes", "--class", "high-performance", high["id"], looks["name"])
        for image in (high, looks):
            self.assertEqual(PROPERTIES, self.properties(image))
            self.assertEqual([f"{TAG}:high-performance"], image["tags"])
        # Without names: every class, unless one is named.
        self.assertEqual(2, len(self.sync("--yes")))
        self.assertEqual({}, self.sync("--yes", "--class", "general"))

    def test_pages(self):
        for number in range(5):
            self.add(f"image{number}", tags=[TAG])
        self.assertEqual(5, len(self.sync("--yes")))
        self.assertEqual(5, Glance.patches)

    def test_someone_else_changes_it_meanwhile(self):
        debian = self.add(hw_vif_model="e1000")
        Glance.meddle = lambda image: image.pop("hw_vif_model")
        self.assert_command(1, "409: Property", "image", "sync", "debian", "--yes")
        self.sync("debian", "--yes")
        self.assertEqual(PROPERTIES, self.properties(debian))

    def test_tenants_stop_nobody(self):
        debian = self.add(tags=[TAG])

        def add(name, **members):
            tags = [TAG, *members.pop("tags", ())]
            return self.add(name, tags, owner="t", visibility="private", **members)

        def back(image):
            image.pop("hw_vif_model", None)
            return 200

        gone = add("gone", tags=[f"{TAG}:gone"])
        greedy = add("greedy", **{RECORD: "license", "license": "1"})
        full, locked, restless = add("full"), add("locked"), add("restless")
        Glance.owner = {
            full["id"]: lambda _: 413,
            locked["id"]: lambda _: 403,
            # He is faster, each time.
            restless["id"]: lambda _: 409,
            add("undone", hw_vif_model="e1000")["id"]: back,
        }
        stubborn = add("stubborn")
        Glance.images[stubborn["id"]] = Stubborn(stubborn)
        # It comes after all of theirs.
        last = self.add("last", tags=[TAG])

        found = self.sync("--yes")

        for image in (debian, last):
            self.assertEqual(PROPERTIES, self.properties(image))
        self.assertEqual("set", found["greedy"][0])
        self.assertEqual("1", greedy["license"])
        self.assertEqual({}, self.properties(gone))
        for name, words in (
            ("gone", "has the tag nova-perfvm:gone"),
            ("full", "413: it is full"),
            ("locked", "rights of an administrator"),
            ("restless", "409: it is full"),
            ("undone", "409: Property hw_vif_model does not exist"),
        ):
            self.assertEqual("leave", found[name][0])
            self.assertIn(words, found[name][1])
        # Nor does one by its name; that of another stays his.
        add("debian")
        self.assertEqual("leave", self.sync("--yes", "debian")["debian"][0])
        self.assert_command(1, "it is full", "image", "sync", "--yes", "full")

    def test_errors_are_one_line_and_change_nothing(self):
        self.add("twice")
        self.add("twice")
        debian = dict(self.add())
        for words, status, arguments in (
            ("no image nowhere", 0, ["nowhere"]),
            ("2 images are called twice", 0, ["debian", "twice"]),
            ("no class 'gold'", 0, ["debian", "--class", "gold"]),
            ("see the service's log", 500, ["debian"]),
        ):
            Glance.refuse = status
            ended, stdout, stderr = self.run_command(
                "image", "sync", "--yes", *arguments
            )
            self.assertEqual((1, ""), (ended, stdout))
            self.assertEqual(1, len(stderr.splitlines()), stderr)
            self.assertIn(words, stderr)
            self.assertEqual(debian, Glance.images[debian["id"]])
            self.assertEqual(0, Glance.patches)

    def test_no_glance(self):
        api = API(
            openstack.connection.Connection(
                session=session.Session(auth=Identity("a", "p", "admin", {})),
                image_endpoint_override="http://127.0.0.1:1/",
            )
        )
        exc = self.assertRaises(CloudError, cloud_images.find_image, api, "debian")
        self.assertIn("Glance does not answer", str(exc))
