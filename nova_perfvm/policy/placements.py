# SPDX-License-Identifier: Apache-2.0
"""What each value of ``placement`` requires of a policy, and what it costs.

The schemes themselves are in :mod:`nova_perfvm.placement.schemes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm import constants as const
from nova_perfvm import findings
from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.policy.room import largest_slots, shape_slots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nova_perfvm.policy.model import Policy


def problems_of(policy: Policy) -> Iterator[Mistake]:
    """Yield what the scheme of a policy cannot express of it."""
    if policy.placement in _PROBLEMS:
        yield from _PROBLEMS[policy.placement](policy)


def costs_of(policy: Policy) -> Iterator[tuple[str, Mistake]]:
    """Yield the code of a finding and the words of what the scheme costs."""
    if policy.placement in _COSTS:
        code, words = _COSTS[policy.placement]
        yield code, Mistake(("placement",), words)


def _units_problems(policy: Policy) -> Iterator[Mistake]:
    """Yield what child providers cannot express."""
    if len(policy.pinned_classes) != 1:
        yield Mistake(
            ("placement",),
            "units serves exactly one class with cpu_policy: dedicated, which takes "
            f"a child provider whole; found {len(policy.pinned_classes)}: use slots",
        )
    for vm_class in policy.pinned_classes:
        path = ("classes", vm_class.name)
        if vm_class.exclusive != "host":
            yield Mistake(
                (*path, "exclusive"),
                f"{vm_class.exclusive}, but units keep classes apart by host: use "
                "exclusive: host, or placement: slots",
            )
        if vm_class.cells_per_vm != 1:
            yield Mistake(
                (*path, "numa_nodes"),
                f"{vm_class.numa_nodes}, but under units a VM takes one NUMA node: "
                "use 1, or placement: slots",
            )
        for shape in policy.host_shapes:
            slots, most = shape_slots(vm_class, shape), len(const.CHILD_LETTERS)
            if slots > most:
                yield Mistake(
                    (*path, "max_per_host"),
                    f"{slots} VMs fit a host of {shape}, and units tell at most {most} "
                    f"apart: set max_per_host: {most} or less, or use placement: slots",
                )
    declared, slots = policy.elastic.slots, largest_slots(policy)
    if declared is not None and declared < slots:
        yield Mistake(
            ("elastic", "slots"),
            f"{declared}, but {slots} VMs fit a host of the policy's largest "
            f"host_shape: expected {slots} or more, or null for just as many",
        )


_PROBLEMS: Final[Mapping[str, Callable[[Policy], Iterator[Mistake]]]] = {
    "units": _units_problems,
}
_FALLBACK: Final = (
    "units rests on Nova's fallback query from PCPU to VCPU "
    "([workarounds]disable_fallback_pcpu_query = False), which Nova means to remove "
    "one day"
)
_COSTS: Final = {"units": (findings.RESTS_ON_FALLBACK, _FALLBACK)}
