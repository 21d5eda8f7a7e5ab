# SPDX-License-Identifier: Apache-2.0
"""Tasks for the Ansible collection openstack.cloud (version 2 or later)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from nova_perfvm.generate.flavors import PolicyFlavor, placement_names
from nova_perfvm.osc.formats import document


class _Unsafe(str):
    """Text that Ansible must not take for a Jinja template."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """YAML with Ansible's ``!unsafe``."""


_Dumper.add_representer(
    _Unsafe, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text), "'")
)


def flavor_tasks(flavors: Sequence[PolicyFlavor]) -> str:
    """Return a task list, one openstack.cloud.compute_flavor for each flavor.

    Tasks that create the flavors' traits in Placement come first.  The collection has
    no module for resource classes; the first host that offers one creates it.

    compute_flavor deletes and re-creates a flavor whose size differs, and removes
    extra specs that are not listed.
    """
    tasks = [
        {
            "name": f"Trait {name}",
            "openstack.cloud.trait": {"state": "present", "id": name},
        }
        for kind, name in placement_names(flavors)
        if kind == "trait"
    ] + [
        {
            "name": f"Flavor {flavor.name}",
            "openstack.cloud.compute_flavor": {
                "state": "present",
                **document.resource_values(flavor),
            },
        }
        for flavor in flavors
    ]
    return _dump(document.with_texts(tasks, _unsafe))


def image_tasks(properties: Mapping[str, str]) -> str:
    """Return a task list that sets the properties of the image perfvm_image.

    openstack.cloud.image would create an empty image if none has that name, so the
    first two tasks stop the play unless exactly one has.
    """
    found = {
        "name": "Find the image",
        "openstack.cloud.image_info": {"image": "{{ perfvm_image }}"},
        "register": "perfvm_images",
    }
    exists = {
        "name": "Stop unless exactly one image has that name or ID",
        "ansible.builtin.assert": {
            "that": ["perfvm_images.images | length == 1"],
            "fail_msg": "expected exactly one image of that name or ID",
        },
    }
    described = {
        "name": "Set the image's properties",
        "openstack.cloud.image": {
            "state": "present",
            "name": "{{ perfvm_images.images[0].id }}",
            "visibility": "{{ perfvm_images.images[0].visibility }}",
            "properties": document.with_texts(properties, _unsafe),
        },
    }
    return _dump([found, exists, described])


def _dump(tasks: Sequence[Any]) -> str:
    return yaml.dump(tasks, Dumper=_Dumper, sort_keys=False, width=1000)


def _unsafe(text: str) -> str:
    """Return a text, marked as unsafe if Ansible would take it for a template."""
    marks = ("{{", "{%", "{#")
    return _Unsafe(text) if any(mark in text for mark in marks) else text
