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
from nova_perfvm.facts.snapshot import Image
from nova_perfvm.generate.flavors import generate_image_properties
from nova_perfvm.generate.properties import Properties, PropertiesConflictError
from nova_perfvm.policy import loader
from tests.unit.generate import plugins

POLICY = loader.load()
DESIRED = tagged_properties(POLICY)
ALL = generate_image_properties(POLICY)
HIGH = tag_of("high-performance")


def image(tags=(), **properties):
    return Image("id-1", "debian", properties, tags=frozenset(tags))


def synced(**properties):
    return image([TAG], **ALL | {RECORD: ",".join(sorted(ALL))} | properties)


class PlanImagesTest(testtools.TestCase):
    def one(self, observed, *, desired=DESIRED, tag=None):
        """Return the change of one image, None if it is left."""
        plan = plan_images(desired, [observed], {observed.id: tag} if tag else {}, "p")
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

    def test_what_changes(self):
        """Of an image with some properties; an empty detail for one that is left."""
        scsi = {"hw_disk_bus": "scsi", "hw_scsi_model": "virtio-scsi"}
        for observed, tag, detail in (
            (synced(os_distro="debian"), None, ""),
            (synced(), TAG, ""),
            (synced(hw_vif_model="e1000"), None, "hw_vif_model=virtio (was e1000)"),
            # Its disks stay where the guest finds them.
            (image([TAG], **ALL | scsi), None, ""),
            (synced(hw_disk_bus="scsi"), None, "hw_scsi_model=virtio-scsi"),
            (synced(hw_disk_bus="ide"), None, "hw_disk_bus=virtio (was ide)"),
        ):
            change = self.one(observed, tag=tag)
            self.assertEqual(detail, change.detail if change else "", observed)

    def test_what_the_policy_gave_up_is_unset_if_sync_has_set_it(self):
        desired = {TAG: {"hw_vif_model": "virtio"}}
        change = self.one(synced(), desired=desired)
        self.assertEqual(
            {"hw_disk_bus", "hw_vif_multiqueue_enabled"}, {*change.surplus}
        )
        self.assertEqual("hw_vif_model", change.record[1])
        # It had these before it was named for the first time.
        self.assertIsNone(self.one(image([TAG], **ALL), desired=desired))
        # What is gone is dropped from the record.
        change = self.one(image([TAG], **{RECORD: "hw_gone"}), desired={TAG: {}})
        self.assertEqual((("hw_gone", ""), {}), (change.record, change.surplus))

    def test_tags_of_several_classes(self):
        properties = generate_image_properties(POLICY, class_name="high-performance")
        change = self.one(image([tag_of("general")]), tag=HIGH)
        self.assertEqual(properties, change.properties)
        contrary = {HIGH: {"a": "1"}, tag_of("general"): {"a": "2"}}
        observed = image([HIGH, tag_of("general")])
        self.assertRaises(
            PropertiesConflictError, plan_images, contrary, [observed], {}, "p"
        )

    def test_refused(self):
        plan = plan_images(DESIRED, [image([tag_of("gone")])], {}, "p")
        self.assertIn("image unset --tag", plan.refusals[0])
        plan = plan_images({}, [image()], {"id-1": TAG}, "p")
        self.assertIn("name one with --class", plan.refusals[0])
        plan = plan_images({TAG: {"name": "x"}}, [image()], {"id-1": TAG}, "p")
        self.assertEqual(("name is Glance's own, no image property",), plan.refusals)


class TenantsImagesTest(testtools.TestCase):
    """What a tenant writes on his own image is his own matter."""

    def theirs(self, tags, **properties):
        return dataclasses.replace(
            image(tags, **properties), id="id-2", owner="tenant", visibility="private"
        )

    def plan(self, observed, desired=DESIRED, named=()):
        """Return the plan for an image of the operator's and another one."""
        images = [image([TAG]), observed]
        return plan_images(desired, images, dict.fromkeys(named, TAG), "p")

    def test_tags_that_no_class_has(self):
        observed = self.theirs([TAG, tag_of("gone\n\x1b")])
        found = self.plan(observed)
        self.assertEqual(
            ((), ["id-1"]), (found.refusals, [c.id for c in found.changes])
        )
        (left,) = found.left
        self.assertIn(r"a tenant's: it has the tag nova-perfvm:gone\n", left.detail)
        # But whoever names it is to know.
        (refusal,) = self.plan(observed, named=["id-2"]).refusals
        self.assertIn("(id-2) has the tag", refusal)
        # And so with one of the administrators'.
        found = self.plan(dataclasses.replace(observed, owner="p"))
        self.assertEqual(1, len(found.refusals))

    def test_nothing_is_removed_for_the_record(self):
        # It lists what Glance may let only administrators remove.
        observed = self.theirs([TAG], **{RECORD: "license", "license": "1"})
        for named in ((), ["id-2"]):
            _, change = self.plan(observed, named=named).changes
            self.assertEqual(ALL, change.properties)
            self.assertEqual({}, change.surplus)
            self.assertEqual(("license", "license"), change.record)
            self.assertEqual(not named, change.unasked)


class TaggedPropertiesTest(testtools.TestCase):
    def test_classes_that_no_image_can_serve(self):
        def differ(policy, vm_class):
            return Properties(image={"hw_x": vm_class.name})

        single = dataclasses.replace(POLICY, classes=POLICY.classes[:1])
        with plugins.installed(differ=differ):
            desired = tagged_properties(POLICY)
            self.assertIn(TAG, tagged_properties(single))
        self.assertEqual({HIGH, tag_of("general")}, desired.keys())
