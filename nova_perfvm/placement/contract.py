# SPDX-License-Identifier: Apache-2.0
"""The contract: resources and traits that a request of a class asks Placement for.

Stated once: the generator writes the contract into flavors, the filter refuses requests
that differ, and the audit finds servers that differ.  Only a flavor may name the
project's resource classes and traits: tenants write the properties of images, and Nova
adds an image's traits to the flavor's.  Nova-api's validators of extra specs see one
key at a time, so they cannot check the contract of a whole flavor.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from nova_perfvm.facts import RequestFacts
from nova_perfvm.facts.placement_request import NUMERIC_SUFFIX, Group, grouped
from nova_perfvm.placement.schemes import guaranteed_iops, is_ours, scheme_of
from nova_perfvm.policy import Policy, VMClass

# Resource classes whose amounts Nova derives itself.  If a flavor names another amount,
# the VM uses more or fewer CPUs or memory than Placement counts.
_NOVAS_OWN: Final = frozenset({"PCPU", "VCPU", "MEMORY_MB"})
_PINNING: Final = re.compile(NUMERIC_SUFFIX)


@dataclass(frozen=True)
class Contract:
    """Resources and traits that each VM of a class asks Placement for.

    :ivar groups: the groups of the request, the group without a suffix first
    :ivar group_policy: value of the extra spec ``group_policy``; None without
    :ivar left_to_aggregates: forbidden traits that a flavor may leave out, because
        isolated aggregates keep the class's VMs off hosts with these traits
    :ivar host_traits: required traits that are not nova_perfvm's; the image may
        require them instead of the flavor
    """

    groups: tuple[Group, ...]
    group_policy: str | None = None
    left_to_aggregates: frozenset[str] = frozenset()
    host_traits: frozenset[str] = frozenset()

    def extra_specs(self, *, isolated_aggregates: bool = False) -> dict[str, str]:
        """Return the contract as extra specs of a flavor.

        :param isolated_aggregates: whether to omit ``left_to_aggregates``
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
    """Return the contract of a VM of a class.

    :param memory_mb: memory of the VM in MiB
    """
    scheme = scheme_of(policy)
    first, *others = scheme.groups(policy, vm_class, memory_mb)
    iops = guaranteed_iops(vm_class) if scheme.counts else {}
    resources = {**first.resources, **iops}
    host_traits = frozenset(vm_class.host_traits)
    required = first.required | host_traits
    return Contract(
        groups=(Group("", resources, required, first.forbidden), *others),
        # With several groups Nova needs a group_policy, or the server ends in ERROR.
        group_policy=scheme.group_policy(vm_class) if others else None,
        left_to_aggregates=first.forbidden,
        host_traits=host_traits,
    )


def resource_differences(
    expected: Contract | None, request: RequestFacts
) -> tuple[list[str], list[str]]:
    """Return a request's surplus amounts, and the amounts that it lacks, in words.

    A group with a suffix is compared as a whole, with its traits but without the
    suffix: a unit of any child does not replace a unit of a certain child.

    :param expected: None for a request without a class, for which all is surplus
    """
    wanted = Counter(_amounts(expected.groups if expected else ()))
    found = Counter(_amounts(_groups(request)))
    for name in _NOVAS_OWN.intersection(r.name for r in request.resources):
        amount = _asked_amount(request, name)
        if amount != _novas_amount(request, name):
            found[f"{amount} {name}"] += 1
    return sorted((found - wanted).elements()), sorted((wanted - found).elements())


def trait_differences(
    expected: Contract | None, request: RequestFacts
) -> tuple[list[str], list[str]]:
    """Return a request's surplus traits, and the traits that it lacks, in words.

    Only traits of the group without a suffix: :func:`resource_differences` compares the
    other groups with their traits.

    :param expected: None for a request without a class, for which all is surplus
    """
    found = set(_traits(_groups(request)[0]))
    wanted = set(_traits(expected.groups[0])) if expected else set()
    missing = wanted - found
    if expected:
        missing -= {f"{name} forbidden" for name in expected.left_to_aggregates}
        # The image may require the host traits instead of the flavor.
        required = {
            t.name for t in request.traits if (t.group, t.state) == ("", "required")
        }
        missing.update(f"{name} required" for name in expected.host_traits - required)
    return sorted(found - wanted), sorted(missing)


def _groups(request: RequestFacts) -> tuple[Group, ...]:
    """Return the flavor's resources and traits of nova_perfvm, by group."""
    return grouped(
        (r for r in request.resources if is_ours(r.name)),
        (t for t in request.traits if is_ours(t.name) and t.source == "flavor"),
    )


def _amounts(groups: Iterable[Group]) -> Iterator[str]:
    """Yield nova_perfvm's amounts in words: a text for each suffixed group as a whole.

    The unsuffixed group has a text for each amount.
    """
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


def _asked_amount(request: RequestFacts, name: str) -> int:
    """Return the sum of a resource class over the groups, as Nova asks Placement.

    -1 if Nova refuses the amount of a group.
    """
    amounts = {r.group: r.amount for r in request.resources if r.name == name}
    named = any(
        r.name == "PCPU" and r.amount > 0 and _PINNING.fullmatch(r.group)
        for r in request.resources
    )
    pinned = any(cell.pcpus for cell in request.cells)
    if name != "MEMORY_MB" and pinned and not named:
        # The CPU policy of flavor or image adds its amounts to the unsuffixed group.
        amounts[""] = _novas_amount(request, name) or amounts.get("", 0)
    return sum(amounts.values()) if min(amounts.values()) >= 0 else -1


def _novas_amount(request: RequestFacts, name: str) -> int:
    """Return the amount that Nova itself asks for, of PCPU, VCPU or MEMORY_MB (MiB)."""
    if name == "MEMORY_MB":
        return request.memory_mb
    pinned = sum(cell.pcpus for cell in request.cells)
    if name == "VCPU":
        return request.vcpus - pinned
    return pinned + (request.emulator_threads == "isolate" if pinned else 0)
