# SPDX-License-Identifier: Apache-2.0
"""The restrictions that each value of ``placement`` puts on a policy.

The schemes themselves are in :mod:`nova_perfvm.placement.schemes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nova_perfvm import constants as const
from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.policy.classes import VMClass
from nova_perfvm.policy.limits import SMALL_PAGES
from nova_perfvm.policy.room import largest_slots, shape_slots
from nova_perfvm.policy.shapes import HostShape


def rests_on_fallback(placement: str) -> bool:
    """Return whether a scheme's pinned VMs need Nova's second query, for VCPU."""
    return placement == "units"


def problems_of(
    placement: str,
    pinned: Sequence[VMClass],
    shapes: Sequence[HostShape],
    elastic_slots: int | None,
) -> Iterator[Mistake]:
    """Yield a mistake for each value of the pinned classes that a scheme rules out.

    :param placement: name of the scheme
    :param pinned: the policy's pinned classes
    :param shapes: the policy's host shapes
    :param elastic_slots: the policy's key ``elastic: slots``
    """
    if placement == "cells":
        yield from _of_cells(pinned)
    if rests_on_fallback(placement):
        yield from _of_units(pinned, shapes, elastic_slots)


def _of_cells(pinned: Sequence[VMClass]) -> Iterator[Mistake]:
    """Yield the mistakes under ``cells``, where pinned classes share NUMA nodes."""
    several = len(pinned) > 1
    for mine in pinned:
        path, first = ("classes", mine.name), pinned[0]
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
            if value != same and not {value, same} <= SMALL_PAGES:
                yield Mistake(
                    (*path, key),
                    f"{value or 'null'}, but cells count what a NUMA node has in one "
                    f"way for all pinned classes: use {same or 'null'}, as "
                    f"{first.name} has",
                )


def _of_units(
    pinned: Sequence[VMClass], shapes: Sequence[HostShape], declared: int | None
) -> Iterator[Mistake]:
    """Yield the mistakes under ``units``: a VM of the one class takes a whole child."""
    if len(pinned) != 1:
        yield Mistake(
            ("placement",),
            "units serves exactly one class with cpu_policy: dedicated, which takes "
            f"a child provider whole; found {len(pinned)}: use slots",
        )
    for vm_class in pinned:
        path = ("classes", vm_class.name)
        for key, found, expected in (
            ("exclusive", vm_class.exclusive, "host"),
            ("numa_nodes", vm_class.cells_per_vm, 1),
        ):
            if found != expected:
                message = f"{found}, but under units only {expected} is possible: use"
                yield Mistake((*path, key), f"{message} that, or placement: slots")
        most = len(const.CHILD_LETTERS)
        slots = max(shape_slots(vm_class, shape) for shape in shapes)
        if slots > most:
            yield Mistake(
                (*path, "max_per_host"),
                f"{slots} VMs fit a host, and units tell at most {most} apart: set "
                f"max_per_host: {most} or less, or use placement: slots",
            )
    slots = largest_slots(pinned, shapes)
    if declared is not None and declared < slots:
        yield Mistake(
            ("elastic", "slots"),
            f"{declared}, but {slots} VMs fit a host of the policy's largest "
            f"host_shape: expected {slots} or more, or null for just as many",
        )
