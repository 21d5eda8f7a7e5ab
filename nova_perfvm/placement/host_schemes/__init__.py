# SPDX-License-Identifier: Apache-2.0
"""Inventories, traits and child providers of hosts under each scheme."""

from collections.abc import Callable, Iterable
from typing import Final

from nova_perfvm.facts.host_view import HostView
from nova_perfvm.placement.host_schemes import cells, units
from nova_perfvm.placement.host_schemes.cells import nodes_offered, on_nodes
from nova_perfvm.placement.host_schemes.host_scheme import Child, HostScheme, Mode
from nova_perfvm.placement.schemes import SCHEMES
from nova_perfvm.policy import Policy

# {name of the scheme: host half}, in the order of SCHEMES.
HOST_SCHEMES: Final[dict[str, HostScheme]] = {
    name: HostScheme(scheme) for name, scheme in SCHEMES.items()
} | {mine.scheme.name: mine for mine in (units.HOSTS, cells.HOSTS)}


def host_scheme_of(policy: Policy) -> HostScheme:
    """Return the host half of the policy's scheme."""
    return HOST_SCHEMES[policy.placement]


def enrolled_by_another(policy: Policy, view: HostView) -> str:
    """Return the name of another scheme that a host is enrolled under; empty for none.

    The scheme's trait on the host, or its child providers, show the enrolment.
    """
    classes = {name for child in view.children for name in child.inventories}
    for name, other in HOST_SCHEMES.items():
        if name != policy.placement and other.scheme.enrolls:
            traits = view.root.elastic_traits
            named = any(t.startswith(other.enrolled_prefix) for t in traits)
            if named or any(map(other.counts_by, classes)):
                return name
    return ""


def names_of(which: Callable[[HostScheme], bool]) -> str:
    """Return the names of the schemes that satisfy `which`, joined with "or"."""
    return " or ".join(name for name, other in HOST_SCHEMES.items() if which(other))


def scheme_counting(resource_classes: Iterable[str]) -> HostScheme | None:
    """Return the scheme that counts VMs by one of `resource_classes`; None for none."""
    names = list(resource_classes)
    found = (s for s in HOST_SCHEMES.values() if any(map(s.counts_by, names)))
    return next(found, None)


__all__ = [
    "HOST_SCHEMES",
    "Child",
    "HostScheme",
    "Mode",
    "enrolled_by_another",
    "host_scheme_of",
    "names_of",
    "nodes_offered",
    "on_nodes",
    "scheme_counting",
]
