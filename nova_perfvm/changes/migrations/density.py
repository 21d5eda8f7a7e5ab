# SPDX-License-Identifier: Apache-2.0
"""The usage of a plan's target hosts after the migrations."""

import math
from collections.abc import Collection, Iterator

from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.printable import number_of


def crowding(ratio: float, *, packs: bool) -> float:
    """Return how much general servers share CPUs, from the vCPUs for each CPU.

    :param packs: whether hosts fill up as long as each vCPU has a CPU.  Hosts with few
        servers then stay nearly empty, and a later plan empties them by few migrations.
    """
    return max(1.0, ratio) if packs else ratio


def of_fullest(views: Collection[HostView]) -> Iterator[str]:
    """Yield the usage of the fullest host in words; nothing without hosts.

    The fullest host has the highest usage of VCPU, PCPU or MEMORY_MB as a share of the
    capacity in Placement, which includes the allocation ratio.
    """
    found = sorted((sorted(_used(v), reverse=True), v.name) for v in views)
    for used, name in found[-1:]:
        said = ", ".join(words for _, words in used)
        yield f"the fullest target afterwards is {name}: {said}"


def of_all(views: Collection[HostView]) -> Iterator[str]:
    """Yield the vCPUs for each CPU of all hosts whose CPUs servers share."""
    shared = [view.root for view in views if view.tree and view.root.total("VCPU")]
    if shared:
        used = sum(root.used("VCPU") for root in shared)
        cpus = sum(root.total("VCPU") for root in shared)
        yield (
            f"general servers then have {used / cpus:.2g} vCPUs for each CPU, on "
            f"{number_of(len(shared), 'host')} together"
        )


def _used(view: HostView) -> Iterator[tuple[float, str]]:
    for name in {"VCPU", "PCPU", "MEMORY_MB"} & view.root.inventories.keys():
        used, of = view.root.used(name), view.root.inventories[name]
        each = f"{used / of.total:.2g} for each CPU, " if name == "VCPU" else ""
        words = (
            f"{used} of {of.total} {name} ({each}allocation ratio "
            f"{of.allocation_ratio:g})"
        )
        yield used / max(1, of.capacity), words


def limit(
    views: Collection[HostView], moves: Collection[Move], ratio: float | None
) -> Iterator[str]:
    """Yield how densely general servers may share CPUs, and why; nothing if none moves.

    :param views: the targets
    """
    if all(move.pinned for move in moves):
        return
    ratios = {view.ratios["VCPU"] for view in views if "VCPU" in view.ratios}
    if ratio is not None and ratio < max(ratios, default=math.inf):
        yield f"general servers take at most {ratio:g} vCPUs for each CPU (--max-ratio)"
        return
    said = ", ".join(f"{one:g}" for one in sorted(ratios))
    yield (
        f"general servers take at most {said} vCPUs for each CPU (allocation_ratio in "
        "Placement; --max-ratio can only lower it)"
    )
