# SPDX-License-Identifier: Apache-2.0
"""A template of Heat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nova_perfvm.documents.yaml_lines import dump_yaml
from nova_perfvm.generate.flavors import PolicyFlavor
from nova_perfvm.osc.formats import document, shell

# Of Rocky, and thus known to every Heat that is still maintained.
_VERSION: Final = "2018-08-31"


def flavor_template(flavors: Sequence[PolicyFlavor]) -> str:
    """Return a template with an ``OS::Nova::Flavor`` for each flavor.

    Heat has no resource for the traits and resource classes that Placement has to
    know, so a comment has the commands.
    """
    template = {
        "heat_template_version": _VERSION,
        "resources": {
            name: {"type": "OS::Nova::Flavor", "properties": values}
            for name, values in document.resources(flavors).items()
        },
    }
    comment = "".join(f"# {line}\n" for line in shell.names_first(flavors))
    return comment + dump_yaml(template)
