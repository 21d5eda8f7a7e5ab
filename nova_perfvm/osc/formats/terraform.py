# SPDX-License-Identifier: Apache-2.0
"""Configuration for Terraform, with the provider terraform-provider-openstack.

It is in Terraform's JSON syntax, which OpenTofu reads, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nova_perfvm.generate.flavors import FlavorError, PolicyFlavor
from nova_perfvm.generate.limits import Limit
from nova_perfvm.osc.formats import document, shell

_PROVIDER: Final = {"openstack": {"source": "terraform-provider-openstack/openstack"}}


def flavor_resources(flavors: Sequence[PolicyFlavor]) -> str:
    """Return a resource ``openstack_compute_flavor_v2`` for each flavor.

    The provider has no resource for traits and resource classes, so a comment has the
    commands that create them in Placement.
    """
    resources = {"openstack_compute_flavor_v2": _resources(flavors)}
    return document.as_json(
        {
            "//": shell.names_first(flavors),
            "terraform": {"required_providers": _PROVIDER},
            "resource": document.with_texts(resources, _quoted),
        }
    )


def _resources(flavors: Sequence[PolicyFlavor]) -> dict[str, dict[str, Any]]:
    """Return flavors by their names as Terraform resources.

    An underscore replaces each character that is no letter or digit: ``hp_20c_64g``.

    :raises FlavorError: when two flavors would have the same name
    """
    found: dict[str, dict[str, Any]] = {}
    for flavor in flavors:
        name = _named(flavor.name)
        if name in found:
            raise FlavorError(
                f"{found[name]['name']!r} and {flavor.name!r} would both be the "
                f"resource {name}: give them names that differ in letters or digits"
            )
        found[name] = document.resource_values(flavor)
    return found


def limit_resources(limits: Sequence[Limit], region: str) -> str:
    """Return a resource for each limit; projects are given by ID."""
    resources: dict[str, dict[str, Any]] = {}
    for limit in limits:
        kind = f"openstack_identity_{limit.kind.replace(' ', '_')}_v3"
        name = _named(f"{limit.resource} {limit.project}".strip())
        found = document.with_texts({"region": region, **limit.members}, _quoted)
        found["service_id"] = "${data.openstack_identity_service_v3.nova.id}"
        if limit.project:
            first = f"openstack_identity_registered_limit_v3.{_named(limit.resource)}"
            found["depends_on"] = [first]
        resources.setdefault(kind, {})[name] = found
    return document.as_json(
        {
            "//": shell.LIMITS_FIRST,
            "terraform": {"required_providers": _PROVIDER},
            "data": {"openstack_identity_service_v3": {"nova": {"name": "nova"}}},
            "resource": resources,
        }
    )


def image_locals(properties: Mapping[str, str]) -> str:
    """Return a local value for the ``properties`` of images."""
    values = {"perfvm_image_properties": properties}
    return document.as_json({"locals": document.with_texts(values, _quoted)})


def _named(text: str) -> str:
    """Return a text as the name of a resource."""
    return re.sub(r"^(?=\d)|\W", "_", text, flags=re.ASCII)


def _quoted(text: str) -> str:
    """Return a text whose template marks are escaped for Terraform."""
    return text.replace("${", "$${").replace("%{", "%%{")
