# SPDX-License-Identifier: Apache-2.0
"""Commands of the openstack client that change resource providers."""

from shlex import quote
from typing import Final

from nova_perfvm.microversions import PLACEMENT_NAMES

_TRAIT: Final = (
    f"openstack --os-placement-api-version {PLACEMENT_NAMES} resource provider trait"
)


def remove_trait(uuid: str, trait: str) -> str:
    """Return the command that takes a trait from a provider: it sets the others."""
    return (
        f"{_TRAIT} set $({_TRAIT} list {uuid} -f value -c name | "
        f"grep -vx {quote(trait)} | sed 's/^/--trait /') {uuid}"
    )
