# SPDX-License-Identifier: Apache-2.0
"""Flavors that nova-api refuses with an image, because their keys contradict.

The rules are those of ``numa_get_constraints`` and ``get_vif_multiqueue_constraint`` of
:mod:`nova.virt.hardware`, for the keys of which classes consist.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from oslo_utils import strutils

from nova_perfvm import constants as const
from nova_perfvm.facts.placement_request import whole_number
from nova_perfvm.facts.snapshot import Flavor

_NAMED_CPUS: Final = re.compile(r"resources([1-9]\d*)?:[PV]CPU")
_LOCKED: Final = "hw:locked_memory"
_SWITCHES: Final = (const.VIF_MULTIQUEUE, "hw:pmu", "hw:virtio_packed_ring")
# The name of Nova's exception, and the extra specs that it is about.
Conflict = tuple[str, tuple[str, ...]]


def conflicts(flavor: Flavor, properties: Mapping[str, str]) -> Iterator[Conflict]:
    """Yield the conflicts between the keys of a flavor and an image, or in either.

    :param properties: the image's
    """
    specs = flavor.extra_specs

    def pair(key: str) -> tuple[str, str]:
        return specs.get(key, ""), properties.get(key.replace(":", "_"), "")

    policies, threads = pair(const.CPU_POLICY), pair(const.CPU_THREAD_POLICY)
    named = tuple(key for key in specs if _NAMED_CPUS.fullmatch(key))
    owned = [whole_number(specs[key]) or 0 for key in named if key.endswith("PCPU")]
    pinned = "dedicated" in policies or bool(owned)
    extra = specs.get(const.EMULATOR_THREADS) == "isolate"
    if policies[0] == "shared" and policies[1] not in {"", "shared"}:
        yield "ImageCPUPinningForbidden", (const.CPU_POLICY,)
    short = owned and (len(owned) < len(named) or sum(owned) != flavor.vcpus + extra)
    if named and (any(policies) or short):
        yield "InvalidRequest", (const.CPU_POLICY, *named)
    if threads[0] not in {"", "prefer"} and threads[1] not in {"", threads[0]}:
        yield "ImageCPUThreadPolicyForbidden", (const.CPU_THREAD_POLICY,)
    if any(threads) and not pinned:
        keys = const.CPU_THREAD_POLICY, const.CPU_POLICY
        yield "CPUThreadPolicyConfigurationInvalid", keys
    if extra and not pinned:
        keys = const.EMULATOR_THREADS, const.CPU_POLICY
        yield "BadRequirementEmulatorThreadsPolicy", keys
    if all(pair(const.NUMA_NODES)):
        yield "ImageNUMATopologyForbidden", (const.NUMA_NODES,)
    yield from _of_memory(pair(const.MEM_PAGE_SIZE), pair(_LOCKED))
    # Nova gives a VM of one vCPU one queue, whatever is asked.
    for key in _SWITCHES if flavor.vcpus > 1 else _SWITCHES[1:]:
        if _differ(pair(key)):
            yield "FlavorImageConflict", (key,)


def _of_memory(pages: tuple[str, str], locked: tuple[str, str]) -> Iterator[Conflict]:
    if pages[1] and pages[0] not in {"any", "large"}:
        yield "MemoryPageSizeForbidden", (const.MEM_PAGE_SIZE,)
    if _differ(locked):
        yield "FlavorImageLockedMemoryConflict", (_LOCKED,)
    elif any(map(strutils.bool_from_string, locked)) and not any(pages):
        yield "LockMemoryForbidden", (_LOCKED, const.MEM_PAGE_SIZE)


def _differ(said: tuple[str, str]) -> bool:
    """Return whether a flavor and an image both say, and one yes, the other no."""
    return len({strutils.bool_from_string(text) for text in said if text}) > 1
