# SPDX-License-Identifier: Apache-2.0
"""A request as Placement and the rules see it, and how a cloud changes it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts import RequestFacts
from nova_perfvm.facts.placement_request import Group
from nova_perfvm.facts.prefilters import SINCE, Keys
from nova_perfvm.facts.snapshot import ServerGroup, Snapshot
from nova_perfvm.facts.snapshot.groups import AFFINITY
from nova_perfvm.facts.snapshot.pci import PCIRequest

# The trait by which nova-compute 34 marks its providers, and the first version of the
# service that does (MIN_COMPUTE_VERSION_OWNER_TRAIT).
OWNED: Final = "OWNER_NOVA"
_OWNS: Final = 73


class RequestError(PerfVMError):
    """A flavor and image whose request cannot be determined.

    nova-api refuses the pair, no host is large enough, or the vCPUs are unequal.
    """


@dataclass(frozen=True)
class Demand:
    """A request for allocation candidates; the group without a suffix first.

    :ivar group_policy: ``isolate``: no two groups with a suffix share a provider
    :ivar root_required: traits that the host's own provider must have
    """

    groups: tuple[Group, ...]
    group_policy: str | None = None
    root_required: frozenset[str] = frozenset()

    @property
    def required(self) -> frozenset[str]:
        """The traits that any group requires."""
        return frozenset(trait for group in self.groups for trait in group.required)


@dataclass(frozen=True)
class Request:
    """A request as both Placement and the rules see it.

    :ivar fallback: Nova's second request, with VCPU in place of PCPU, which
        [workarounds]disable_fallback_pcpu_query turns off; None unless the CPU policy
        is dedicated
    :ivar project: ID of the project; empty if unknown
    :ivar server: ID of the existing server; empty for a new server
    :ivar group: the server's server group
    :ivar pci: the requested PCI devices
    :ivar pci_claimed: the devices that nova-compute claims when a server moves, one for
        each of ``pci``; empty for a new server, which gets those of ``pci``
    :ivar unseen: extra specs and prefilters whose effect is not modelled
    """

    facts: RequestFacts
    demand: Demand
    fallback: Demand | None = None
    availability_zone: str = ""
    project: str = ""
    server: str = ""
    group: ServerGroup | None = None
    pci: tuple[PCIRequest, ...] = ()
    pci_claimed: tuple[PCIRequest, ...] = ()
    unseen: tuple[str, ...] = ()
    keys: Keys = field(default_factory=Keys)

    @property
    def anchors(self) -> frozenset[str]:
        """IDs of the servers that an affinity group requires on the same host."""
        if self.group is None or self.group.policy != AFFINITY:
            return frozenset()
        return self.group.members


def with_groups(request: Request, groups: Sequence[Group]) -> Request:
    """Return the request with further groups for Placement, such as PCI devices."""
    if not groups:
        return request
    demand, fallback = (
        None
        if demand is None
        else replace(
            demand,
            groups=(*demand.groups, *groups),
            # nova-scheduler's choice if the flavor has at most one suffixed group.
            group_policy=demand.group_policy
            or ("none" if len(demand.groups) <= 2 else None),
        )
        for demand in (request.demand, request.fallback)
    )
    assert demand is not None
    return replace(request, demand=demand, fallback=fallback)


def in_cloud(request: Request, snapshot: Snapshot) -> Request:
    """Return a request with the traits that the prefilters of a cloud's Nova add.

    OWNER_NOVA is added if every nova-compute is new enough (``owner_nova_filter``).  A
    prefilter of ``SINCE`` exists only in newer releases.  If any provider has a trait
    with its prefix, Nova is new enough; else the prefilter's traits are removed, and
    its name is added to ``unseen``.
    """
    demands = (request.demand, request.fallback)
    owned = {OWNED} if snapshot.oldest_compute >= _OWNS else frozenset()
    asked = request.demand.root_required
    kinds = {name: kind for name, kind in SINCE.items() if _any_of(asked, kind)}
    unknown = {
        name: kind
        for name, kind in kinds.items()
        if not any(_any_of(provider.traits, kind) for provider in snapshot.providers)
    }
    left_out = tuple(unknown.values())
    kept = frozenset(t for t in asked if not (left_out and t.startswith(left_out)))
    first, other = (
        demand and replace(demand, root_required=kept | owned) for demand in demands
    )
    assert first is not None
    unseen = (*request.unseen, *unknown)
    return replace(request, demand=first, fallback=other, unseen=unseen)


def _any_of(traits: Iterable[str], kind: str) -> bool:
    """Return whether any trait begins with the prefix `kind`."""
    return any(trait.startswith(kind) for trait in traits)
