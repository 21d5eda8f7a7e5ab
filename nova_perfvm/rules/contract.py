# SPDX-License-Identifier: Apache-2.0
"""The rule that a request carries its class's contract with Placement.

It rests on the flavor and the image alone, so it holds however old the
scheduler's facts of hosts are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova_perfvm import constants as const
from nova_perfvm.facts import Reason
from nova_perfvm.placement.contract import (
    contract,
    is_ours,
    resource_differences,
    trait_differences,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nova_perfvm.facts import HostFacts, RequestFacts
    from nova_perfvm.policy import Policy, VMClass


def check_contract(
    policy: Policy, vm_class: VMClass | None, request: RequestFacts
) -> Iterator[Reason]:
    """Yield what a request names of Placement otherwise than its class does.

    A flavor that names neither a class nor anything of the project is left as it
    is: it was there before, and elastic hosts are closed to it.

    :param vm_class: None for a request of no class, which may name nothing
    """
    if policy.placement == "none" or not _names_project(request):
        return
    expected = None if vm_class is None else contract(policy, vm_class)
    for code, differences in (
        (const.FLAVOR_RESOURCES, resource_differences),
        (const.FLAVOR_TRAITS, trait_differences),
    ):
        found, missing = differences(expected, request)
        if found or missing:
            yield Reason(code, {"found": found, "expected": missing})


def check_image_traits(request: RequestFacts) -> Iterator[Reason]:
    """Yield the project's traits that the image requires.

    Nova adds them to the flavor's, and tenants write images: such a trait would
    open hosts to VMs that carry nothing else of the contract.
    """
    found = sorted(
        t.name for t in request.traits if t.source == "image" and is_ours(t.name)
    )
    if found:
        yield Reason(const.REQUEST_IMAGE_TRAIT, {"found": found})


def check_units(request: RequestFacts, host: HostFacts) -> Iterator[Reason]:
    """Yield why a request without units may not come to an elastic host.

    Whether those that it has are the right ones is judged with the request.
    """
    if host.isolating and not any(r.name == const.RC_UNIT for r in request.resources):
        yield Reason(const.HOST_UNITS_LACKING, {"traits": sorted(host.isolating)})


def _names_project(request: RequestFacts) -> bool:
    return (
        request.class_name is not None
        or any(is_ours(r.name) for r in request.resources)
        or any(is_ours(t.name) and t.source == "flavor" for t in request.traits)
    )
