# SPDX-License-Identifier: Apache-2.0
"""Commands of the openstack client that change resource providers."""

from collections.abc import Iterable
from shlex import quote
from typing import Final

from nova_perfvm.microversions import PLACEMENT_NAMES

_TRAIT: Final = (
    f"openstack --os-placement-api-version {PLACEMENT_NAMES} resource provider trait"
)


def set_traits(uuid: str, *, more: Iterable[str] = (), without: str = "") -> str:
    """Return the command that gives a provider other traits, which sets all anew.

    :param uuid: of the provider
    :param more: traits that it is to have besides
    :param without: a trait that it is to lose
    """
    kept = f"grep -vx {quote(without)} | " if without else ""
    added = "".join(f" --trait {quote(name)}" for name in more)
    return (
        f"{_TRAIT} set $({_TRAIT} list {uuid} -f value -c name | {kept}"
        f"sed 's/^/--trait /'){added} {uuid}"
    )
