# SPDX-License-Identifier: Apache-2.0
"""Rules about the request alone: whether it is of the class that it claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova_perfvm import constants as const
from nova_perfvm.facts import Reason
from nova_perfvm.policy import PAGE_SIZES_KB
from nova_perfvm.rules.contract import check_contract, check_image_traits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nova_perfvm.facts import RequestFacts
    from nova_perfvm.policy import Policy, VMClass

# What an explicit size of the request may be when the policy says it by kind.
# Nova's small page is the host's smallest (4 KiB on x86, up to 64 KiB on
# arm64 and ppc64), large any above it.
_SMALL_MAX_KB = 64


def resolve_class(policy: Policy, request: RequestFacts) -> VMClass | None:
    """Return the class of a request.

    The class that the flavor names; else the default class, unless the request
    is pinned: a pinned VM of no class belongs to none (None), as does one whose
    flavor names a class that is not declared.
    """
    if request.class_name is not None:
        return policy.by_name.get(request.class_name)
    if request.pinned:
        return None
    return policy.default_class


def check_request(policy: Policy, request: RequestFacts) -> tuple[Reason, ...]:
    """List all that keeps a request from being of the class it claims.

    A request that claims none is right by definition, as the default class takes
    any size, unless it names what is the project's own.
    """
    image = tuple(check_image_traits(request))
    if request.class_name is None:
        vm_class = resolve_class(policy, request)
        return (*image, *check_contract(policy, vm_class, request))
    vm_class = policy.by_name.get(request.class_name)
    if vm_class is None:
        return (
            Reason(
                const.FLAVOR_CLASS_UNKNOWN,
                {"found": request.class_name, "expected": sorted(policy.by_name)},
            ),
            *image,
        )
    return (
        *_violations(vm_class, request),
        *check_contract(policy, vm_class, request),
        *image,
    )


def is_former_size(policy: Policy, request: RequestFacts) -> bool:
    """Return whether only a server that runs with it may have the request's size."""
    vm_class = policy.by_name.get(request.class_name or "")
    return vm_class is not None and request.vcpus in vm_class.former_vcpus


def check_image(
    policy: Policy, request: RequestFacts, labels: frozenset[str]
) -> tuple[Reason, ...]:
    """List what a new image takes from a server that is rebuilt with it.

    A rebuild keeps flavor, NUMA topology (nova-api sees to that) and host, so
    only what an image alone decides is judged: multiqueue, which a flavor without a
    class does not promise, and traits, for which the next move would ask Placement.

    :param labels: of the server's host
    """
    traits = tuple(check_image_traits(request))
    if request.class_name is None or not policy.manages(labels):
        return traits
    vm_class = policy.by_name.get(request.class_name)
    return traits if vm_class is None else (*_multiqueue(vm_class, request), *traits)


def _violations(vm_class: VMClass, request: RequestFacts) -> Iterator[Reason]:
    former = request.vcpus in vm_class.former_vcpus
    if vm_class.vcpus not in {None, request.vcpus} and not (
        former and request.running_vcpus == request.vcpus
    ):
        yield Reason(
            const.FLAVOR_VCPUS,
            {"found": request.vcpus, "expected": vm_class.vcpus, "former": former},
        )
    dedicated = bool(request.cells) and not any(c.vcpus for c in request.cells)
    if (not dedicated) if vm_class.pinned else request.pinned:
        found = "dedicated" if dedicated else "mixed" if request.pinned else "shared"
        yield Reason(
            const.FLAVOR_CPU_POLICY, {"found": found, "expected": vm_class.cpu_policy}
        )
    else:
        yield from _topology(vm_class, request)
    yield from _page_size(vm_class, request)
    yield from _multiqueue(vm_class, request)
    if vm_class.disk.source == "volume" and request.volume_backed is False:
        yield Reason(const.REQUEST_NOT_VOLUME_BACKED, {})


def _topology(vm_class: VMClass, request: RequestFacts) -> Iterator[Reason]:
    """Judge how a request of the right CPU policy is spread."""
    cells = request.cells
    if vm_class.numa_nodes is not None or vm_class.pinned:
        expected = vm_class.cells_per_vm
        sizes = [cell.vcpus + cell.pcpus for cell in cells]
        if len(cells) != expected or len(set(sizes)) > 1:
            yield Reason(
                const.FLAVOR_NUMA_NODES, {"found": sizes, "expected": expected}
            )
    if not vm_class.pinned:
        return
    wanted = vm_class.cpu_thread_policy or "prefer"
    found = {cell.cpu_thread_policy or "prefer" for cell in cells}
    if found != {wanted}:
        yield Reason(
            const.FLAVOR_CPU_THREAD_POLICY,
            {"found": ", ".join(sorted(found)), "expected": wanted},
        )
    # Nova takes an additional CPU for isolate, so neither may be chosen by a
    # flavor alone; share takes none and Nova has no word for "no policy".
    if (request.emulator_threads == "isolate") != (
        vm_class.emulator_threads == "isolate"
    ):
        yield Reason(
            const.FLAVOR_EMULATOR_THREADS,
            {
                "found": request.emulator_threads,
                "expected": vm_class.emulator_threads,
            },
        )


def _page_size(vm_class: VMClass, request: RequestFacts) -> Iterator[Reason]:
    wanted = vm_class.mem_page_size
    if wanted is None:
        return
    found = {cell.page_size_kb for cell in request.cells} or {None}
    if not all(_is_page_size(wanted, size_kb) for size_kb in found):
        yield Reason(
            const.FLAVOR_MEM_PAGE_SIZE,
            {"found": sorted(found, key=str), "expected": wanted},
        )


def _is_page_size(wanted: str, size_kb: int | None) -> bool:
    if size_kb is None:
        return False
    if wanted == "small":
        return size_kb == const.PAGE_SMALL or 0 < size_kb <= _SMALL_MAX_KB
    if wanted == "large":
        return size_kb == const.PAGE_LARGE or size_kb > _SMALL_MAX_KB
    return size_kb == PAGE_SIZES_KB[wanted]


def _multiqueue(vm_class: VMClass, request: RequestFacts) -> Iterator[Reason]:
    # Nova gives a VM of one vCPU one queue, whatever is asked.
    if vm_class.vif_multiqueue and request.vcpus > 1 and not request.multiqueue:
        yield Reason(const.REQUEST_NO_MULTIQUEUE, {})
