# SPDX-License-Identifier: Apache-2.0
"""What a request of a class must carry towards Placement, and what it must not.

Stated once: the generator writes it into flavors, the filter refuses requests
that differ from it, and the audit finds servers that do.  Only a flavor may name
what is the project's own: tenants write the properties of images, and Nova adds
an image's traits to those of the flavor.  The validators of nova-api do not ask:
Nova shows them one key at a time, and a contract is about all keys of a flavor.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from nova_perfvm.facts import RequestFacts
from nova_perfvm.facts.placement_request import Group, grouped
from nova_perfvm.placement.schemes import guaranteed_iops, is_ours, scheme_of
from nova_perfvm.policy import Policy, VMClass

# Amounts that Nova works out itself; a flavor that names another one takes other
# CPUs or memory than Placement counts.
_NOVAS_OWN: Final = frozenset({"PCPU", "VCPU", "MEMORY_MB"})


@dataclass(frozen=True)
class Contract:
    """What each VM of a class carries.

    :ivar groups: resources and traits by group, the one without a suffix first
    :ivar group_policy: None where Nova needs none
    :ivar left_to_aggregates: forbidden traits that a flavor may leave out where
        isolated aggregates keep the class's VMs off such hosts
    :ivar host_traits: required traits that are not the project's own, so that an
        image may say them as well
    """

    groups: tuple[Group, ...]
    group_policy: str | None = None
    left_to_aggregates: frozenset[str] = frozenset()
    host_traits: frozenset[str] = frozenset()

    def extra_specs(self, *, isolated_aggregates: bool = False) -> dict[str, str]:
        """Return the contract as a flavor says it.

        :param isolated_aggregates: leave out what these aggregates do
        """
        specs = {} if self.group_policy is None else {"group_policy": self.group_policy}
        left_out = self.left_to_aggregates if isolated_aggregates else frozenset()
        for group in self.groups:
            specs |= {
                f"resources{group.suffix}:{name}": str(amount)
                for name, amount in group.resources.items()
            }
            key = f"trait{group.suffix}:"
            specs |= {key + name: "required" for name in group.required}
            specs |= {key + name: "forbidden" for name in group.forbidden - left_out}
        return specs


def contract(policy: Policy, vm_class: VMClass, memory_mb: int) -> Contract:
    """Return what a VM of a class carries.

    :param memory_mb: of the VM
    """
    scheme = scheme_of(policy)
    first, *others = scheme.groups(policy, vm_class, memory_mb)
    iops = guaranteed_iops(vm_class) if scheme.counts else {}
    resources = {**first.resources, **iops}
    host_traits = frozenset(vm_class.host_traits)
    required = first.required | host_traits
    return Contract(
        groups=(Group("", resources, required, first.forbidden), *others),
        # Nova wants one for several groups; without it the server ends in ERROR.
        group_policy=scheme.group_policy(vm_class) if others else None,
        left_to_aggregates=first.forbidden,
        host_traits=host_traits,
    )


def resource_differences(
    expected: Contract | None, request: RequestFacts
) -> tuple[list[str], list[str]]:
    """Return the amounts that a request names and should not, and the reverse.

    Each in words.  A group with a suffix counts as a whole, whatever its suffix:
    a unit that may come of any child is no unit of a certain one.

    :param expected: None for a request of no class, which may name nothing
    """
    wanted = Counter(_amounts(expected.groups if expected else ()))
    found = Counter(_amounts(_groups(request)))
    for resource in request.resources:
        name, amount = resource.name, resource.amount
        if name in _NOVAS_OWN and amount != _novas_amount(request, name):
            found[f"{amount} {name}"] += 1
    return sorted((found - wanted).elements()), sorted((wanted - found).elements())


def trait_differences(
    expected: Contract | None, request: RequestFacts
) -> tuple[list[str], list[str]]:
    """Return the traits that a request names and should not, and the reverse.

    Those of the group without a suffix, each in words; the others belong to the
    amounts of their groups.
    """
    found = set(_traits(_groups(request)[0]))
    wanted = set(_traits(expected.groups[0])) if expected else set()
    missing = wanted - found
    if expected:
        missing -= {f"{name} forbidden" for name in expected.left_to_aggregates}
        # Those of hosts an image may require as well.
        required = {
            t.name for t in request.traits if (t.group, t.state) == ("", "required")
        }
        missing.update(f"{name} required" for name in expected.host_traits - required)
    return sorted(found - wanted), sorted(missing)


def _groups(request: RequestFacts) -> tuple[Group, ...]:
    """Return what the flavor names of the project's own, by group."""
    return grouped(
        (r for r in request.resources if is_ours(r.name)),
        (t for t in request.traits if is_ours(t.name) and t.source == "flavor"),
    )


def _amounts(groups: Iterable[Group]) -> Iterator[str]:
    """Put the amounts of groups into words."""
    for group in groups:
        amounts = [
            f"{amount} {name}"
            for name, amount in sorted(group.resources.items())
            if is_ours(name)
        ]
        if not group.suffix:
            yield from amounts
            continue
        words = f"{' and '.join(amounts) or 'nothing'} of one provider"
        yield ", ".join([words, *sorted(_traits(group))])


def _traits(group: Group) -> Iterator[str]:
    yield from (f"{name} required" for name in group.required if is_ours(name))
    yield from (f"{name} forbidden" for name in group.forbidden if is_ours(name))


def _novas_amount(request: RequestFacts, name: str) -> int:
    """Return how much Nova asks for where the flavor names no amount."""
    if name == "MEMORY_MB":
        return request.memory_mb
    pinned = sum(cell.pcpus for cell in request.cells)
    if name == "VCPU":
        return request.vcpus - pinned
    return pinned + (request.emulator_threads == "isolate" if pinned else 0)
