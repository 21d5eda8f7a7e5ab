# SPDX-License-Identifier: Apache-2.0
"""The placement schemes: how Placement counts VMs, by the policy's key ``placement``.

Other code asks the :class:`Scheme` that :func:`scheme_of` returns, not the key.
"""

from collections.abc import Callable, Iterable
from typing import Final

from nova_perfvm.facts.host_view import HostView
from nova_perfvm.placement.schemes.cells import CELLS
from nova_perfvm.placement.schemes.none import NONE
from nova_perfvm.placement.schemes.scheme import (
    Child,
    Mode,
    Scheme,
    guaranteed_iops,
    is_ours,
)
from nova_perfvm.placement.schemes.slots import SLOTS
from nova_perfvm.placement.schemes.units import UNITS
from nova_perfvm.policy import Policy

# By name, in the order of the documentation; the names are those that
# nova_perfvm.policy.model lists.
SCHEMES: Final[dict[str, Scheme]] = {s.name: s for s in (SLOTS, UNITS, CELLS, NONE)}


def scheme_of(policy: Policy) -> Scheme:
    """Return the scheme that a policy's key ``placement`` names."""
    return SCHEMES[policy.placement]


def enrolled_by_another(policy: Policy, view: HostView) -> Scheme | None:
    """Return the scheme that enrolled a host, if it is not the policy's; else None."""
    own = scheme_of(policy)
    found = (s for s in SCHEMES.values() if s is not own and s.has_made(view))
    return next(found, None)


def names_of(which: Callable[[Scheme], bool]) -> str:
    """Return the names of the schemes that meet a condition, joined by "or"."""
    return " or ".join(name for name, scheme in SCHEMES.items() if which(scheme))


def scheme_counting(resource_classes: Iterable[str]) -> Scheme | None:
    """Return the scheme that counts VMs by one of these resource classes, or None."""
    names = list(resource_classes)
    for scheme in SCHEMES.values():
        if any(map(scheme.counts_by, names)):
            return scheme
    return None


__all__ = [
    "SCHEMES",
    "Child",
    "Mode",
    "Scheme",
    "enrolled_by_another",
    "guaranteed_iops",
    "is_ours",
    "names_of",
    "scheme_counting",
    "scheme_of",
]
