# SPDX-License-Identifier: Apache-2.0
"""Commands of the openstack client that change providers of hosts in Placement."""

from shlex import quote
from typing import Final

from nova_perfvm.microversions import PLACEMENT_NAMES
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.policy import Policy

_TRAIT: Final = (
    f"openstack --os-placement-api-version {PLACEMENT_NAMES} resource provider trait"
)


def enroll(policy: Policy, host: str, *options: str) -> str:
    """Return the command that enrolls a host under the scheme of a policy."""
    words = ("openstack perfvm host enroll", quote(host))
    return " ".join((*words, *host_scheme_of(policy).enroll_options, *options))


def remove_trait(uuid: str, trait: str) -> str:
    """Return the shell command that removes one trait of a provider, keeping others.

    The client can only set the whole list of traits, so the command lists and filters.
    """
    return (
        f"{_TRAIT} set $({_TRAIT} list {uuid} -f value -c name | "
        f"grep -vx {quote(trait)} | sed 's/^/--trait /') {uuid}"
    )
