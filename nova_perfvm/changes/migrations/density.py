# SPDX-License-Identifier: Apache-2.0
"""How dense hosts are when servers have come to them."""

from collections.abc import Collection, Iterator

from nova_perfvm.facts.host_view import HostView


def of_fullest(views: Collection[HostView]) -> Iterator[str]:
    """Yield what VMs use of the fullest of some hosts; nothing where there are none.

    The fullest is the one with the most of its vCPUs or memory used, as a share of what
    Placement lets it give.
    """
    found = sorted((sorted(_used(v), reverse=True), v.name) for v in views)
    for used, name in found[-1:]:
        said = ", ".join(words for _, words in used)
        yield f"the fullest target is then {name}: {said}"


def _used(view: HostView) -> Iterator[tuple[float, str]]:
    for name in {"VCPU", "PCPU", "MEMORY_MB"} & view.root.inventories.keys():
        used, of = view.root.used(name), view.root.inventories[name]
        words = (
            f"{used} of {of.total} {name} (allocation ratio {of.allocation_ratio:g})"
        )
        yield used / max(1, of.capacity), words
