# SPDX-License-Identifier: Apache-2.0
"""Configuration for Terraform, with the provider of terraform-provider-openstack."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nova_perfvm.generate.flavors import PolicyFlavor
from nova_perfvm.osc.formats import document, shell
from nova_perfvm.osc.formats.identifiers import identifiers

_PROVIDER: Final = """\
terraform {
  required_providers {
    openstack = {
      source = "terraform-provider-openstack/openstack"
    }
  }
}
"""
_ESCAPES: Final = {
    **{code: f"\\u{code:04x}" for code in (*range(32), 127)},
    ord('"'): '\\"',
    ord("\\"): "\\\\",
}
_IMAGES: Final = """\
# In an image's resource, openstack_images_image_v2, say
#   properties = local.perfvm_image_properties
"""


def flavor_resources(flavors: Sequence[PolicyFlavor]) -> str:
    """Return a resource ``openstack_compute_flavor_v2`` for each flavor.

    The provider has no resource for the traits and resource classes that Placement
    has to know, so a comment has the commands.
    """
    names = identifiers(flavor.name for flavor in flavors)
    resources = [
        f'resource "openstack_compute_flavor_v2" "{names[flavor.name]}" '
        + _block(document.resource_values(flavor))
        for flavor in flavors
    ]
    return "\n".join([*shell.names_comment(flavors), _PROVIDER, *resources])


def image_locals(properties: Mapping[str, str]) -> str:
    """Return a local value for the ``properties`` of images."""
    return f"{_IMAGES}locals {{\n  perfvm_image_properties = {_map(properties)}\n}}\n"


def quoted(text: str) -> str:
    """Return a text as an expression of HCL that is just this text."""
    escaped = text.translate(_ESCAPES)
    return '"' + escaped.replace("${", "$${").replace("%{", "%%{") + '"'


def _block(values: Mapping[str, Any]) -> str:
    """Return a resource's arguments in the columns of ``terraform fmt``."""
    width = max(len(k) for k, v in values.items() if not isinstance(v, Mapping))
    lines = [
        f"  {key} = {_map(value)}"
        if isinstance(value, Mapping)
        else f"  {key:<{width}} = {_scalar(value)}"
        for key, value in values.items()
    ]
    return "\n".join(["{", *lines, "}\n"])


def _map(values: Mapping[str, str]) -> str:
    """Return a map of an argument; every key is quoted, be it a word of HCL."""
    width = max((len(quoted(key)) for key in values), default=0)
    lines = [f"    {quoted(k):<{width}} = {quoted(v)}\n" for k, v in values.items()]
    return "".join(["{\n", *lines, "  }"]) if lines else "{}"


def _scalar(value: str | int) -> str:
    """Return a text, a number or a truth value."""
    return quoted(value) if isinstance(value, str) else json.dumps(value)
