# SPDX-License-Identifier: Apache-2.0
"""Compare a cloud's image properties with the policy's, and plan the changes.

The policy applies to an image once an operator has named the image, which gives it a
tag.  Snapshots of servers inherit properties but not tags.  Only properties that the
policy generates now, or generated before, are changed; a record on the image lists
them.

A tenant may write the tag and the record on his own images.  Therefore such an image
never stops changes of other images, and no property is removed from it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.changes.steps import Change, Left, Plan
from nova_perfvm.changes.sync import assignments, differences
from nova_perfvm.facts.snapshot.resources import IMAGE_MEMBERS, Image
from nova_perfvm.generate.flavors import generate_image_properties
from nova_perfvm.generate.properties import PropertiesConflictError, merge
from nova_perfvm.policy import Policy
from nova_perfvm.printable import one_line

TAG: Final = "nova-perfvm"
RECORD: Final = const.IMAGE_RECORD
# The other fast disk bus; libvirt's default model on it is lsilogic, which is emulated.
_VIRTIO_SCSI: Final = {"hw_disk_bus": "scsi", "hw_scsi_model": "virtio-scsi"}


@dataclass(frozen=True)
class ChangeImage(Change):
    """Change properties and tags of an image in one request.

    :ivar properties: properties to set
    :ivar before: the present values of properties that the image has already
    :ivar surplus: properties to remove, with their values
    :ivar tags: all tags of the image after the change
    :ivar new_tags: tags to add
    :ivar record: the present record and the new one; empty for none
    :ivar unasked: whether it is a tenant's image that no operator has named
    """

    words = "set on image {0.name} ({0.id}): {0.detail}"
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
    unasked: bool = False

    @property
    def detail(self) -> str:
        """The properties to set and unset, and the tags to add."""
        parts = [assignments(self.properties, self.before)]
        parts += [f"unset {key} (was {value})" for key, value in self.surplus.items()]
        parts += [f"tag {tag}" for tag in sorted(self.new_tags)]
        return ", ".join(filter(None, parts)) or "the record of what was set"


def tag_of(class_name: str | None) -> str:
    """Return the tag of images for one class, or for all classes (None)."""
    return TAG if class_name is None else f"{TAG}:{class_name}"


def tagged_properties(policy: Policy) -> dict[str, dict[str, str]]:
    """Return the image properties of each tag.

    The tag for all classes is missing if no image can serve all classes.

    :raises PropertiesError: see :func:`nova_perfvm.generate.flavors.properties_of`
    """
    found = {
        tag_of(vm_class.name): generate_image_properties(
            policy, class_name=vm_class.name
        )
        for vm_class in policy.classes
    }
    with contextlib.suppress(PropertiesConflictError):
        found[TAG] = generate_image_properties(policy)
    return found


def plan_images(
    desired: Mapping[str, Mapping[str, str]],
    observed: Iterable[Image],
    named: Mapping[str, str],
    project: str,
) -> Plan:
    """Return the steps that turn images into those that the policy wants.

    :param desired: properties by tag
    :param observed: named images, and images with a tag of the policy
    :param named: {ID of an image: the tag that it should get}
    :param project: ID of the administrators' project
    :raises PropertiesConflictError: when tags of an image contradict each other, unless
        it is a tenant's image that is not named
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
        unasked = image.belongs_to_tenant(project) and image.id not in named
        unknown = sorted(tags - desired.keys())
        if unknown:
            why = _why_unknown(unknown[0])
            if unasked:
                left.append(Left("image", image.title, f"a tenant's: it {why}"))
            else:
                refusals.append(f"image {image.title} ({image.id}) {why}")
            continue
        try:
            wanted = merge(
                "image property", {tag: desired[tag] for tag in sorted(tags)}
            )
        except PropertiesConflictError as exc:
            if not unasked:
                raise
            left.append(Left("image", image.title, f"a tenant's: {exc}"))
            continue
        change = _change(image, tags, wanted, project)
        if change is None:
            left.append(Left("image", image.title, "as the policy says"))
        else:
            changes.append(replace(change, unasked=unasked))
    return Plan(() if refusals else tuple(changes), tuple(refusals), tuple(left))


def _why_unknown(tag: str) -> str:
    """Return why a tag stands for no class, or not for a single one."""
    if tag == TAG:
        return (
            "cannot serve all classes of the policy at once: name one with --class, "
            f"and remove the tag {TAG} if it has it (openstack image unset --tag)"
        )
    return (
        f"has the tag {one_line(tag)}, and the policy has no such class: remove it "
        "(openstack image unset --tag)"
    )


def _change(
    image: Image, tags: AbstractSet[str], properties: Mapping[str, str], project: str
) -> ChangeImage | None:
    wanted = dict(properties)
    if "hw_disk_bus" in wanted and image.properties.get("hw_disk_bus") == "scsi":
        # After a change of the bus a guest may not find its root disk.
        wanted |= _VIRTIO_SCSI
    found = differences(image.properties, wanted)
    before = after = image.properties.get(RECORD, "")
    surplus = {}
    # A tenant could write a record that makes us remove properties which Glance does
    # not let him remove.
    if not image.belongs_to_tenant(project):
        recorded = set(filter(None, before.split(",")))
        after = ",".join(sorted(recorded & wanted.keys() | found.set.keys()))
        surplus = {key: found.surplus[key] for key in recorded & found.surplus.keys()}
    new_tags = frozenset(tags - image.tags)
    if not (found.set or surplus or new_tags) and before == after:
        return None
    return ChangeImage(
        id=image.id,
        name=image.title,
        properties=found.set,
        before=found.changed,
        surplus=dict(sorted(surplus.items())),
        tags=image.tags | tags,
        new_tags=new_tags,
        record=(before, after),
    )
