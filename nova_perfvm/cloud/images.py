# SPDX-License-Identifier: Apache-2.0
"""Read a cloud's images, and give them the policy's properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from oslo_utils.uuidutils import is_uuid_like

from nova_perfvm.changes.images import RECORD, ChangeImage, plan_images
from nova_perfvm.changes.steps import Plan
from nova_perfvm.cloud import answers
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError, NotThereError, openstack_errors
from nova_perfvm.facts.snapshot import Image
from nova_perfvm.facts.snapshot.resources import IMAGE_MEMBERS

# Members of an image, beside its properties, that Nova reads to judge a request.
_READ_BY_NOVA: Final = (
    *("container_format", "disk_format", "id", "min_disk", "min_ram", "name", "size"),
    "status",
)

Desired = Mapping[str, Mapping[str, str]]


@openstack_errors()
def plan(api: API, desired: Desired, tag: str, named: Sequence[str] = ()) -> Plan:
    """Return the steps that turn a cloud's images into those of a policy.

    :param desired: see :func:`nova_perfvm.changes.images.plan_images`
    :param tag: the tag for the images in `named`
    :param named: names or IDs of images; empty for all images with a tag of `desired`
    :raises CloudError: when a request fails, or a name does not denote exactly one
        image
    """
    found = [find_image(api, name) for name in named]
    if not named:
        found = [answers.image(i) for known in desired for i in api.images(tag=known)]
    unique = {image.id: image for image in found}
    return plan_images(
        desired,
        unique.values(),
        {image: tag for image in unique if named},
        api.project(),
    )


@openstack_errors()
def for_nova(api: API, identity: str) -> dict[str, Any]:
    """Return an image as nova-api reads it, see ``nova.image.glance``."""
    found = api.glance("GET", f"/images/{quote(identity)}")
    properties = {key: found[key] for key in found.keys() - IMAGE_MEMBERS}
    return {key: found.get(key) for key in _READ_BY_NOVA} | {"properties": properties}


@openstack_errors()
def find_image(api: API, name: str) -> Image:
    """Return the one image that has a name or an ID.

    Tenants may choose any name: if several images share the name, those of
    administrators win over those of tenants, and visible images win over hidden ones,
    which newer images have replaced (openstackclient prefers them alike).

    :raises CloudError: when no image or several images match
    """
    if is_uuid_like(name):
        try:
            return answers.image(api.glance("GET", f"/images/{quote(name)}"))
        except NotThereError:
            # The text may be a name that looks like an ID.
            pass
    project = api.project()
    found = [answers.image(image) for image in api.images(name=name)]
    found = [i for i in found if not i.belongs_to_tenant(project)] or found
    found = [image for image in found if not image.hidden] or found
    if len(found) == 1:
        return found[0]
    if not found:
        raise CloudError(
            f"no image {name}: see openstack image list --all, and --hidden", 404
        )
    ids = ", ".join(image.id for image in found)
    raise CloudError(f"{len(found)} images are called {name}: name one by ID: {ids}")


def apply(api: API, change: ChangeImage) -> None:
    """Make one change of a plan."""
    operations = [
        _operation("replace" if key in change.before else "add", key, value)
        for key, value in change.properties.items()
    ]
    operations += [_operation("remove", key) for key in change.surplus]
    before, after = change.record
    if after and before != after:
        operations.append(_operation("replace" if before else "add", RECORD, after))
    elif before and not after:
        operations.append(_operation("remove", RECORD))
    if change.new_tags:
        operations.append(_operation("replace", "tags", sorted(change.tags)))
    # Glance applies all operations of a PATCH or none.
    api.glance("PATCH", f"/images/{change.id}", operations)


def _operation(op: str, key: str, value: Any = None) -> dict[str, Any]:
    # JSON pointers (RFC 6901) require these two characters to be escaped.
    path = "/" + key.replace("~", "~0").replace("/", "~1")
    return {"op": op, "path": path} | ({} if value is None else {"value": value})
