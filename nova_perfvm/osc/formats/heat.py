# SPDX-License-Identifier: Apache-2.0
"""A template of Heat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nova_perfvm.generate.flavors import PolicyFlavor
from nova_perfvm.osc.formats import document, shell
from nova_perfvm.osc.formats.identifiers import identifiers

# Of Rocky, and thus known to every Heat that is still maintained.
_VERSION: Final = "2018-08-31"


def flavor_template(flavors: Sequence[PolicyFlavor]) -> str:
    """Return a template with an ``OS::Nova::Flavor`` for each flavor.

    Heat has no resource for the traits and resource classes that Placement has to
    know, so a comment has the commands.
    """
    names = identifiers(flavor.name for flavor in flavors)
    template = {
        "heat_template_version": _VERSION,
        "resources": {
            names[flavor.name]: {
                "type": "OS::Nova::Flavor",
                "properties": document.resource_values(flavor),
            }
            for flavor in flavors
        },
    }
    return "".join([*shell.names_comment(flavors), document.as_yaml(template)])
