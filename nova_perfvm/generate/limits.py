# SPDX-License-Identifier: Apache-2.0
"""Limits in Keystone on the number of a project's high-performance VMs.

With its driver for unified limits, Nova adds a request's resources to the project's
usage in Placement, and compares the sum of each resource class with Keystone's limit.
So a limit of n VMs of a class is n times a VM's amount of the resource class by which
the scheme counts the class.
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
# The largest limit that Keystone takes.
_MOST: Final = 2**31 - 1
# Number of VMs by class; -1 for any number.
Numbers = Mapping[str, int]

_SERVICES: Final = "nova-api and nova-conductor"
# Reasons for the options, printed as comments.
_DRIVER: Final = (
    "Nova then reads all its limits from Keystone: nova-manage limits "
    "migrate_to_unified_limits copies the limits of Nova's database there."
)
_STRATEGY: Final = (
    "Nova refuses requests for a listed resource without a registered limit."
)
_LIST: Final = "Nova's default, and the resource classes of the policy's VMs."
# Before, nova/limit/utils.py and oslo.limit take len() of a generator of services.
LOOKS_UP: Final = "Nova 34 and oslo.limit 2.9.2"
_LOOKUP: Final = (
    f"Needs {LOOKS_UP}: for older ones, --endpoint prints endpoint_id in its place. "
)
_LOGIN: Final = (
    "Add auth_type, auth_url, username, password, user_domain_name and system_scope = "
    "all, for a user with the role reader on the system."
)


class LimitError(PerfVMError):
    """Requested limits that cannot be generated."""


@dataclass(frozen=True)
class Limit:
    """A limit on a project's amount of a resource.

    :ivar resource: Nova's name: ``class:`` before Placement's resource class
    :ivar value: the largest amount; -1 for any amount
    :ivar detail: the value in words
    :ivar project: ID of the limit's project; empty for a registered limit, which holds
        for all projects without a limit of their own
    :ivar keeps: whether an existing limit keeps its value, as the operator has named
        none
    """

    resource: str
    value: int
    detail: str
    project: str = ""
    keeps: bool = False

    @property
    def kind(self) -> str:
        """Keystone's name of the kind of limit."""
        return "limit" if self.project else "registered limit"

    @property
    def field(self) -> str:
        """Keystone's name of the limit's value."""
        return "resource_limit" if self.project else "default_limit"

    @property
    def members(self) -> dict[str, Any]:
        """The limit's fields in Keystone's API beside service and region."""
        own = {"project_id": self.project} if self.project else {}
        return {"resource_name": self.resource, self.field: self.value, **own}


def limits_of(
    policy: Policy, default: Numbers, projects: Mapping[str, Numbers]
) -> tuple[Limit, ...]:
    """Return limits on the VMs of pinned classes, the registered ones first.

    A class without a number keeps Keystone's limit, or gets an unlimited one.  Other
    ``CUSTOM_PERFVM_`` resource classes get unlimited registered limits: without one,
    Nova may be configured to refuse them (``unified_limits_resource_strategy``).

    Under ``units`` VMs of other classes take the same resource class as pinned VMs: a
    number for such a class adds its VMs to the limit; without a number the limit leaves
    room for as many as fit into less than one pinned VM's amount.

    :param default: numbers for all projects
    :param projects: numbers by project ID
    :raises PerfVMError: when a named class does not exist or is not counted
    :raises LimitError: when classes counted together lack a number, or a limit is
        larger than Keystone takes
    """
    scheme = scheme_of(policy)
    taken = {c.name: scheme.amounts(policy, c, 0) for c in policy.classes}
    counted: dict[str, list[str]] = {}
    for vm_class in policy.pinned_classes:
        slot_class = scheme.slot_class(policy, vm_class)
        # VMs of other classes may hold the same resource.
        resource = slot_class or scheme.resource_class or const.PCPU
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
    """Yield the limit of one resource class; none for a project without a number.

    :param amounts: amount of the resource that a VM takes, by pinned class
    :param beside: amount of the same resource that a VM takes, by other class
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


def settings_of(
    limits: Sequence[Limit], region: str, endpoint: str | None = None
) -> tuple[Setting, ...]:
    """Return the options of nova.conf with which Nova enforces the limits.

    Releases before LOOKS_UP fail to look up an endpoint by service type and region.

    :param region: ID of the region of Nova's endpoint
    :param endpoint: ID of Nova's endpoint; None if Nova looks it up
    """
    resources = dict.fromkeys(limit.resource for limit in limits)
    home: tuple[tuple[str, str, str, str], ...] = (
        ("oslo_limit", "endpoint_service_type", "compute", _LOOKUP + _LOGIN),
        ("oslo_limit", "endpoint_region_name", region, "The limits' region."),
    )
    if endpoint:
        home = (("oslo_limit", "endpoint_id", endpoint, _LOGIN),)
    return tuple(
        Setting(section, option, (value,), why, _SERVICES)
        for section, option, value, why in (
            ("quota", "driver", "nova.quota.UnifiedLimitsDriver", _DRIVER),
            ("quota", "unified_limits_resource_strategy", "require", _STRATEGY),
            (
                *("quota", "unified_limits_resource_list"),
                *(",".join(("servers", *resources)), _LIST),
            ),
            *home,
        )
    )
