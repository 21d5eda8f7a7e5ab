# SPDX-License-Identifier: Apache-2.0
"""The restrictions that each value of ``placement`` puts on a policy.

The schemes themselves are in :mod:`nova_perfvm.placement.schemes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nova_perfvm import constants as const
from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.policy.room import largest_slots, shape_slots

if TYPE_CHECKING:
    from nova_perfvm.policy.model import Policy


def rests_on_fallback(policy: Policy) -> bool:
    """Return whether the policy needs Nova's fallback query from PCPU to VCPU."""
    return policy.placement == "units"


def problems_of(policy: Policy) -> Iterator[Mistake]:
    """Yield the values of a policy that its placement scheme cannot express."""
    if policy.placement == "cells":
        yield from _of_cells(policy)
    if rests_on_fallback(policy):
        yield from _of_units(policy)


def _of_cells(policy: Policy) -> Iterator[Mistake]:
    """Yield values with which pinned classes cannot share the NUMA node providers."""
    several = len(policy.pinned_classes) > 1
    for mine in policy.pinned_classes:
        path, first = ("classes", mine.name), policy.pinned_classes[0]
        if mine.exclusive == "cell" or (several and mine.exclusive != "none"):
            expected = "none" if several else "host or none"
            yield Mistake(
                (*path, "exclusive"),
                f"{mine.exclusive}, but under cells VMs of all pinned classes share "
                f"NUMA nodes, and no others come to their hosts: use {expected}",
            )
        if mine.emulator_threads == "isolate" and mine.cells_per_vm > 1:
            yield Mistake(
                (*path, "emulator_threads"),
                "isolate takes one CPU more on one of the VM's NUMA nodes, and cells "
                f"cannot say which of its {mine.cells_per_vm}: use share, or null",
            )
        for key in ("mem_page_size", "smt"):
            value, same = getattr(mine, key), getattr(first, key)
            if value != same:
                yield Mistake(
                    (*path, key),
                    f"{value}, but cells count what a NUMA node has in one way for "
                    f"all pinned classes: use {same}, as {first.name} has",
                )


def _of_units(policy: Policy) -> Iterator[Mistake]:
    """Yield values of a policy that ``placement: units`` does not support."""
    if len(policy.pinned_classes) != 1:
        yield Mistake(
            ("placement",),
            "units serves exactly one class with cpu_policy: dedicated, which takes "
            f"a child provider whole; found {len(policy.pinned_classes)}: use slots",
        )
    for vm_class in policy.pinned_classes:
        path = ("classes", vm_class.name)
        for key, found, expected in (
            ("exclusive", vm_class.exclusive, "host"),
            ("numa_nodes", vm_class.cells_per_vm, 1),
        ):
            if found != expected:
                message = f"{found}, but under units only {expected} is possible: use"
                yield Mistake((*path, key), f"{message} that, or placement: slots")
        most = len(const.CHILD_LETTERS)
        slots = max(shape_slots(vm_class, shape) for shape in policy.host_shapes)
        if slots > most:
            yield Mistake(
                (*path, "max_per_host"),
                f"{slots} VMs fit a host, and units tell at most {most} apart: set "
                f"max_per_host: {most} or less, or use placement: slots",
            )
    declared, slots = policy.elastic.slots, largest_slots(policy)
    if declared is not None and declared < slots:
        yield Mistake(
            ("elastic", "slots"),
            f"{declared}, but {slots} VMs fit a host of the policy's largest "
            f"host_shape: expected {slots} or more, or null for just as many",
        )
