# SPDX-License-Identifier: Apache-2.0
"""Flavors for Ansible and Terraform: the same parameters in the frame of each tool.

Ansible needs the collection openstack.cloud (version 2 or later), Terraform and
OpenTofu the provider terraform-provider-openstack; they read Terraform's JSON syntax.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import yaml

from nova_perfvm.generate.flavors import FlavorError, PolicyFlavor, placement_names
from nova_perfvm.generate.formats import shell
from nova_perfvm.generate.formats.document import as_json, with_texts

_PROVIDER: Final = {"openstack": {"source": "terraform-provider-openstack/openstack"}}


class _Unsafe(str):
    """Text that Ansible must not take for a Jinja template."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """YAML with Ansible's ``!unsafe``."""


_Dumper.add_representer(
    _Unsafe, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text), "'")
)


def _parameters(flavor: PolicyFlavor) -> dict[str, Any]:
    """Return a flavor with the parameter names of Ansible and Terraform.

    All flavors of a policy are public, and have no disks beside the root disk.
    """
    return {
        "name": flavor.name,
        "ram": flavor.memory_mb,
        "vcpus": flavor.vcpus,
        "disk": flavor.root_gb,
        "ephemeral": 0,
        "swap": 0,
        "is_public": True,
        "extra_specs": dict(flavor.extra_specs),
    }


def ansible(flavors: Sequence[PolicyFlavor]) -> str:
    """Return a task list, one openstack.cloud.compute_flavor for each flavor.

    Tasks that create the flavors' traits in Placement come first.  The collection has
    no module for resource classes; the first host that offers one creates it.

    compute_flavor deletes and re-creates a flavor whose size differs, and removes
    extra specs that are not listed.
    """
    traits = [name for kind, name in placement_names(flavors) if kind == "trait"]
    tasks = [
        (f"Trait {name}", "openstack.cloud.trait", {"id": name}) for name in traits
    ] + [
        (f"Flavor {one.name}", "openstack.cloud.compute_flavor", _parameters(one))
        for one in flavors
    ]
    document = [
        {"name": name, module: {"state": "present", **parameters}}
        for name, module, parameters in tasks
    ]
    return yaml.dump(
        with_texts(document, _unsafe), Dumper=_Dumper, sort_keys=False, width=1000
    )


def _unsafe(text: str) -> str:
    """Return a text, marked as unsafe if Ansible would take it for a template."""
    marks = ("{{", "{%", "{#")
    return _Unsafe(text) if any(mark in text for mark in marks) else text


def terraform(flavors: Sequence[PolicyFlavor]) -> str:
    """Return a resource ``openstack_compute_flavor_v2`` for each flavor.

    An underscore replaces each character of a resource's name that is no letter or
    digit, and precedes a first digit: ``hp_20c_64g``.  The provider has no resource for
    traits and resource classes: a comment has the commands that create these.

    :raises FlavorError: when two resources would have the same name
    """
    resources: dict[str, dict[str, Any]] = {}
    for flavor in flavors:
        name = re.sub(r"^(?=\d)|\W", "_", flavor.name, flags=re.ASCII)
        if name in resources:
            raise FlavorError(
                f"{resources[name]['name']!r} and {flavor.name!r} would both be the "
                f"resource {name}: give them names that differ in letters or digits"
            )
        resources[name] = _parameters(flavor)
    return as_json(
        {
            "//": shell.names_first(flavors),
            "terraform": {"required_providers": _PROVIDER},
            "resource": {"openstack_compute_flavor_v2": with_texts(resources, _quoted)},
        }
    )


def _quoted(text: str) -> str:
    """Return a text whose template marks are escaped for Terraform."""
    return text.replace("${", "$${").replace("%{", "%%{")
