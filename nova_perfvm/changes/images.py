# SPDX-License-Identifier: Apache-2.0
"""The policy's image properties against those of a cloud's images.

An image is the policy's business once an operator has named it: it has a tag
since.  Tags, unlike properties, are not inherited by the snapshots of servers.
Of its properties only those that the policy generates are touched, and those
that it generated before: the image keeps a record of them.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nova_perfvm import constants as const
from nova_perfvm.changes.steps import Change
from nova_perfvm.changes.sync import Left, SyncPlan, assignments, differences
from nova_perfvm.facts.snapshot.resources import IMAGE_MEMBERS, Image
from nova_perfvm.generate.flavors import generate_image_properties
from nova_perfvm.generate.properties import PropertiesConflictError, merge
from nova_perfvm.printable import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nova_perfvm.generate.properties import Generator
    from nova_perfvm.policy import Policy

TAG: Final = "nova-perfvm"
RECORD: Final = const.IMAGE_RECORD


@dataclass(frozen=True)
class ChangeImage(Change):
    """Change properties and tags of an image, all at once.

    :ivar properties: to be set
    :ivar before: the values of those that the image has
    :ivar surplus: to be removed, with their values
    :ivar tags: all that it is to have
    :ivar new_tags: those of them that it has not yet
    :ivar record: what the record says and what it is to say; empty for none
    """

    action = "set"
    kind = "image"
    id: str
    name: str
    properties: Mapping[str, str]
    before: Mapping[str, str]
    surplus: Mapping[str, str]
    tags: frozenset[str]
    new_tags: frozenset[str]
    record: tuple[str, str]

    @property
    def detail(self) -> str:
        """What is set, unset and tagged."""
        parts = [assignments(self.properties, self.before)]
        parts += [f"unset {key} (was {value})" for key, value in self.surplus.items()]
        parts += [f"tag {tag}" for tag in sorted(self.new_tags)]
        return ", ".join(filter(None, parts)) or "the record of what was set"

    def __str__(self) -> str:
        return f"set on image {self.name} ({self.id}): {self.detail}"


def tag_of(class_name: str | None) -> str:
    """Return the tag of images for one class, or for all of them."""
    return TAG if class_name is None else f"{TAG}:{class_name}"


def tagged_properties(
    policy: Policy, generators: Mapping[str, Generator]
) -> dict[str, dict[str, str]]:
    """Return the properties of images by the tag that they have.

    The tag for all classes is missing where no image can serve them all.

    :raises PropertiesError: see :func:`nova_perfvm.generate.properties.combine`
    """
    found = {
        tag_of(vm_class.name): generate_image_properties(
            policy, class_name=vm_class.name, generators=generators
        )
        for vm_class in policy.classes
    }
    with contextlib.suppress(PropertiesConflictError):
        found[TAG] = generate_image_properties(policy, generators=generators)
    return found


def plan_images(
    desired: Mapping[str, Mapping[str, str]],
    observed: Iterable[Image],
    named: Mapping[str, str],
) -> SyncPlan:
    """Return the steps from images as they are to images as they should be.

    :param desired: properties by tag
    :param observed: the images that are named, and those that have a tag
    :param named: tags by the IDs of the images that are to get one
    :raises PropertiesConflictError: when an image has two tags that contradict
        each other
    """
    changes: list[Change] = []
    left = []
    own = sorted(
        {key for keys in desired.values() for key in keys if key in IMAGE_MEMBERS}
    )
    refusals = [f"{key} is Glance's own, no image property" for key in own]
    for image in observed:
        tags = {tag for tag in image.tags if tag == TAG or tag.startswith(f"{TAG}:")}
        tags |= {named[image.id]} if image.id in named else set()
        unknown = sorted(tags - desired.keys())
        if unknown:
            refusals.append(_unknown(image, unknown[0]))
            continue
        change = _change(image, {tag: desired[tag] for tag in sorted(tags)})
        if change is None:
            left.append(Left("image", image.title, "as the policy says"))
        else:
            changes.append(change)
    if refusals:
        return SyncPlan(left=tuple(left), refusals=tuple(refusals))
    return SyncPlan(tuple(changes), tuple(left))


def _unknown(image: Image, tag: str) -> str:
    if tag == TAG:
        return (
            f"image {image.title} ({image.id}) cannot serve all classes of the policy "
            f"at once: name one with --class, and remove the tag {TAG} if it has it "
            "(openstack image unset --tag)"
        )
    return (
        f"image {image.title} ({image.id}) has the tag {one_line(tag)}, and the "
        "policy has no such class: remove it (openstack image unset --tag)"
    )


def _change(
    image: Image, sources: Mapping[str, Mapping[str, str]]
) -> ChangeImage | None:
    wanted = merge("image property", sources)
    if _virtio_scsi(image):
        # A guest that boots from it may not find its disk elsewhere.
        wanted.pop("hw_disk_bus", None)
    found = differences(image.properties, wanted)
    recorded = set(filter(None, image.properties.get(RECORD, "").split(",")))
    record = ",".join(sorted(recorded & wanted.keys() | found.set.keys()))
    surplus = {key: found.surplus[key] for key in recorded & found.surplus.keys()}
    tags = image.tags | sources.keys()
    change = ChangeImage(
        id=image.id,
        name=image.title,
        properties=found.set,
        before=found.changed,
        surplus=dict(sorted(surplus.items())),
        tags=tags,
        new_tags=tags - image.tags,
        record=(image.properties.get(RECORD, ""), record),
    )
    same_record = change.record[0] == change.record[1]
    if not (found.set or surplus or change.new_tags) and same_record:
        return None
    return change


def _virtio_scsi(image: Image) -> bool:
    """Return whether the image uses the other fast disk bus."""
    properties = image.properties
    return (
        properties.get("hw_disk_bus") == "scsi"
        and properties.get("hw_scsi_model") == "virtio-scsi"
    )
