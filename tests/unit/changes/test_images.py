# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.changes.images import (
    RECORD,
    TAG,
    plan_images,
    tag_of,
    tagged_properties,
)
from nova_perfvm.exceptions import UnknownClassError
from nova_perfvm.facts.snapshot import Image
from nova_perfvm.generate.flavors import generate_image_properties
from nova_perfvm.generate.properties import (
    BUILT_IN,
    Properties,
    PropertiesConflictError,
)
from nova_perfvm.policy import loader

POLICY = loader.load()
DESIRED = tagged_properties(POLICY, BUILT_IN)
ALL = generate_image_properties(POLICY)
HIGH = tag_of("high-performance")


def image(tags=(), **properties):
    return Image("id-1", "debian", properties, tags=frozenset(tags))


def synced(**properties):
    return image([TAG], **ALL | {RECORD: ",".join(sorted(ALL))} | properties)


class PlanImagesTest(testtools.TestCase):
    def one(self, observed, *, desired=DESIRED, tag=None):
        """Return the change of one image, None if it is left."""
        plan = plan_images(desired, [observed], {observed.id: tag} if tag else {})
        self.assertEqual((), plan.refusals)
        self.assertEqual(1, len(plan.changes) + len(plan.left))
        return plan.changes[0] if plan.changes else None

    def test_an_image_that_is_named(self):
        change = self.one(image(["theirs"], os_distro="debian"), tag=TAG)
        self.assertEqual(ALL, change.properties)
        self.assertEqual({}, change.surplus)
        self.assertEqual({"theirs", TAG}, change.tags)
        self.assertEqual(("", ",".join(sorted(ALL))), change.record)
        self.assertEqual(
            "hw_disk_bus=virtio, hw_vif_model=virtio, hw_vif_multiqueue_enabled=true, "
            f"tag {TAG}",
            change.detail,
        )

    def test_nothing_to_do(self):
        self.assertIsNone(self.one(synced(os_distro="debian")))
        self.assertIsNone(self.one(synced(), tag=TAG))

    def test_drift(self):
        change = self.one(synced(hw_vif_model="e1000"))
        self.assertEqual("hw_vif_model=virtio (was e1000)", change.detail)
        self.assertEqual({"hw_vif_model": "virtio"}, change.properties)

    def test_what_the_policy_gave_up_is_unset_if_sync_has_set_it(self):
        desired = {TAG: {"hw_vif_model": "virtio"}}
        change = self.one(synced(), desired=desired)
        self.assertEqual(
            {"hw_disk_bus", "hw_vif_multiqueue_enabled"}, {*change.surplus}
        )
        self.assertEqual("hw_vif_model", change.record[1])
        # It had these before it was named for the first time.
        self.assertIsNone(self.one(image([TAG], **ALL), desired=desired))

    def test_a_record_of_what_is_gone_is_dropped(self):
        change = self.one(image([TAG], **{RECORD: "hw_gone"}), desired={TAG: {}})
        self.assertEqual((("hw_gone", ""), {}), (change.record, change.surplus))

    def test_virtio_scsi_stays(self):
        scsi = {"hw_disk_bus": "scsi", "hw_scsi_model": "virtio-scsi"}
        change = self.one(image(**scsi), tag=TAG)
        self.assertNotIn("hw_disk_bus", change.properties)
        change = self.one(image(hw_disk_bus="scsi"), tag=TAG)
        self.assertIn("hw_disk_bus=virtio (was scsi)", change.detail)

    def test_tags_of_several_classes(self):
        properties = generate_image_properties(POLICY, class_name="high-performance")
        change = self.one(image([tag_of("general")]), tag=HIGH)
        self.assertEqual(properties, change.properties)
        contrary = {HIGH: {"a": "1"}, tag_of("general"): {"a": "2"}}
        observed = image([HIGH, tag_of("general")])
        self.assertRaises(
            PropertiesConflictError, plan_images, contrary, [observed], {}
        )

    def test_refused(self):
        plan = plan_images(DESIRED, [image([tag_of("gone")])], {})
        self.assertIn("image unset --tag", plan.refusals[0])
        plan = plan_images({}, [image()], {"id-1": TAG})
        self.assertIn("name one with --class", plan.refusals[0])
        plan = plan_images({TAG: {"name": "x"}}, [image()], {"id-1": TAG})
        self.assertEqual(("name is Glance's own, no image property",), plan.refusals)


class TaggedPropertiesTest(testtools.TestCase):
    def test_one_for_each_class_and_one_for_all(self):
        self.assertEqual({TAG, HIGH, tag_of("general")}, DESIRED.keys())
        self.assertEqual({}, DESIRED[tag_of("general")])
        self.assertEqual(ALL, DESIRED[TAG])

    def test_classes_that_no_image_can_serve(self):
        def differ(policy, vm_class):
            return Properties(image={"hw_x": vm_class.name})

        desired = tagged_properties(POLICY, {"differ": differ})
        self.assertEqual({HIGH, tag_of("general")}, desired.keys())
        self.assertRaises(UnknownClassError, POLICY.get_class, "gone")
        single = dataclasses.replace(POLICY, classes=POLICY.classes[:1])
        self.assertIn(TAG, tagged_properties(single, {"differ": differ}))
