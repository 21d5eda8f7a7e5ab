# SPDX-License-Identifier: Apache-2.0
"""The placement schemes: how Placement counts VMs, by the policy's key ``placement``.

A :class:`Scheme` states what VMs ask of Placement, and a
:class:`nova_perfvm.placement.host_schemes.HostScheme` what hosts have there.  Nothing
else looks at the key.
"""

from typing import Final

from nova_perfvm.placement.schemes.cells import CELLS
from nova_perfvm.placement.schemes.none import NONE
from nova_perfvm.placement.schemes.scheme import Scheme, guaranteed_iops, is_ours
from nova_perfvm.placement.schemes.slots import SLOTS
from nova_perfvm.placement.schemes.units import UNITS
from nova_perfvm.policy import Policy

# By name, in the order of the documentation; the names are those that
# nova_perfvm.policy.model lists.
SCHEMES: Final[dict[str, Scheme]] = {s.name: s for s in (SLOTS, UNITS, CELLS, NONE)}


def scheme_of(policy: Policy) -> Scheme:
    """Return the scheme that a policy's key ``placement`` names."""
    return SCHEMES[policy.placement]


__all__ = ["SCHEMES", "guaranteed_iops", "is_ours", "scheme_of"]
