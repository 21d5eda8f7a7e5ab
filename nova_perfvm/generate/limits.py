# SPDX-License-Identifier: Apache-2.0
"""Limits in Keystone on the number of a project's high-performance VMs.

With its driver for unified limits, Nova adds up what a project has in Placement and
what a request asks for, and compares each resource class with a limit in Keystone.  So
a project has n VMs of a class if it may take n times what the scheme counts them by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nova_perfvm import constants as const
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.placement.schemes import is_ours, scheme_of
from nova_perfvm.placement.settings import Setting
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of

UNLIMITED: Final = -1
# Of a limit in Keystone.
_MOST: Final = 2**31 - 1
# How many VMs of each class; -1 for any number.
Numbers = Mapping[str, int]

_SERVICES: Final = "nova-api and nova-conductor"
# Why the options are as they are.
_DRIVER: Final = (
    "Keystone has all of Nova's limits then: nova-manage limits "
    "migrate_to_unified_limits copies those of Nova's database."
)
_STRATEGY: Final = "Without a registered limit, Nova refuses what the list names."
_LIST: Final = "Nova's default, and what VMs of the policy take."
_LOGIN: Final = (
    "Beside it auth_type, auth_url, username, password, user_domain_name and "
    "system_scope = all, of a user that has the role reader there."
)


class LimitError(PerfVMError):
    """Limits that were asked for and cannot be made."""


@dataclass(frozen=True)
class Limit:
    """How much of a resource a project may take.

    :ivar resource: as Nova names it: ``class:`` before Placement's resource class
    :ivar value: -1 for any amount
    :ivar detail: the value in words
    :ivar project: ID of the only project that it is for; empty for a registered limit,
        which holds for all projects without one of their own
    :ivar keeps: whether nobody has asked for the value, so that one that is there stays
    """

    resource: str
    value: int
    detail: str
    project: str = ""
    keeps: bool = False

    @property
    def kind(self) -> str:
        """What Keystone calls it."""
        return "limit" if self.project else "registered limit"

    @property
    def field(self) -> str:
        """What Keystone calls its value."""
        return "resource_limit" if self.project else "default_limit"

    @property
    def members(self) -> dict[str, Any]:
        """What Keystone keeps of it beside service and region."""
        own = {"project_id": self.project} if self.project else {}
        return {"resource_name": self.resource, self.field: self.value, **own}


def limits_of(
    policy: Policy, default: Numbers, projects: Mapping[str, Numbers]
) -> tuple[Limit, ...]:
    """Return limits on the VMs of pinned classes, the registered ones first.

    A class without a number has no limit, unless Keystone has one.  Of all else that is
    the project's own any amount may be taken: Nova can be told to refuse what has no
    registered limit.

    Where VMs of other classes take part of what counts the pinned ones, a number for
    these classes makes room for so many of them; without one they get less than one
    more pinned VM would need.

    :param default: for all projects
    :param projects: by ID
    :raises PerfVMError: when no class of a name is counted
    :raises LimitError: when a limit cannot be worked out, or Keystone takes none such
    """
    scheme = scheme_of(policy)
    taken = {c.name: scheme.amounts(policy, c, 0) for c in policy.classes}
    counted: dict[str, list[str]] = {}
    for vm_class in policy.pinned_classes:
        resource = scheme.counted_by(policy, vm_class)
        counted.setdefault(resource, []).append(vm_class.name)
        taken[vm_class.name][const.PCPU] = vm_class.vm_pcpus
    found: list[Limit] = []
    for project, numbers in {"": default, **projects}.items():
        for name in numbers:
            if name not in taken or counted.keys().isdisjoint(taken[name]):
                policy.pinned_class(name)
        for resource, names in counted.items():
            amounts = {name: taken[name][resource] for name in names}
            beside = {
                name: amount[resource]
                for name, amount in taken.items()
                if name not in amounts and amount[resource]
            }
            found += _limits(f"class:{resource}", amounts, beside, numbers, project)
    others = {name for amounts in taken.values() for name in amounts} - counted.keys()
    found += [
        Limit(f"class:{name}", UNLIMITED, "any amount", keeps=True)
        for name in sorted(filter(is_ours, others))
    ]
    return tuple(sorted(found, key=lambda limit: bool(limit.project)))


def _limits(
    resource: str,
    amounts: Mapping[str, int],
    beside: Mapping[str, int],
    numbers: Numbers,
    project: str,
) -> Iterator[Limit]:
    """Yield the limit on what counts the VMs of some classes together, if any.

    :param amounts: how much a VM of each pinned class takes
    :param beside: how much one of each other class takes of the same
    """
    named = (amounts.keys() | beside.keys()) & numbers.keys()
    if not named:
        if not project:
            yield Limit(resource, UNLIMITED, "any number of VMs", keeps=True)
        return
    free = {name for name in named if numbers[name] == UNLIMITED}
    if not named >= amounts.keys() or (free and not free & amounts.keys()):
        raise LimitError(
            f"VMs of {', '.join((*amounts, *beside))} are counted together, by "
            f"{resource}: give a number for each, or {UNLIMITED} for any of "
            f"{', '.join(amounts)}"
        )
    if free:
        yield Limit(resource, UNLIMITED, "any number of VMs", project)
        return
    counts: dict[tuple[str, ...], int] = {
        (name,): numbers[name] for name in (*amounts, *beside) if name in named
    }
    if beside and not beside.keys() & named:
        counts[*beside] = (min(amounts.values()) - 1) // max(beside.values())
    each = {**amounts, **beside}
    value = sum(count * each[names[0]] for names, count in counts.items())
    if value > _MOST:
        raise LimitError(f"{resource}: a limit of {value}, expected at most {_MOST}")
    words = [
        f"{number_of(count, 'VM')} of {' and '.join(names)}, {each[names[0]]} each"
        for names, count in counts.items()
    ]
    words += [
        f"or {number_of(value // each[names[0]], 'VM')} of {' and '.join(names)} alone"
        for names, count in counts.items()
        if beside and value // each[names[0]] > count
    ]
    yield Limit(resource, value, "; ".join(words), project)


def settings_of(limits: Sequence[Limit], region: str) -> tuple[Setting, ...]:
    """Return what nova.conf says for Nova to enforce the limits.

    :param region: ID of that of Nova's endpoint
    """
    resources = dict.fromkeys(limit.resource for limit in limits)
    return tuple(
        Setting(section, option, (value,), why, _SERVICES)
        for section, option, value, why in (
            ("quota", "driver", "nova.quota.UnifiedLimitsDriver", _DRIVER),
            ("quota", "unified_limits_resource_strategy", "require", _STRATEGY),
            (
                *("quota", "unified_limits_resource_list"),
                *(",".join(("servers", *resources)), _LIST),
            ),
            ("oslo_limit", "endpoint_service_type", "compute", _LOGIN),
            ("oslo_limit", "endpoint_region_name", region, "That of the limits."),
        )
    )
