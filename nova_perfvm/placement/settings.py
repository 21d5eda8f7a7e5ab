# SPDX-License-Identifier: Apache-2.0
"""Options of nova.conf and placement.conf that a scheme of Placement rests on.

:mod:`nova_perfvm.generate.options` has them all in one table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

SCHEDULER: Final = "nova-scheduler"
COMPUTE: Final = "nova-compute"
PLACEMENT: Final = "Placement's API"

# As oslo.config reads a boolean.
_TRUE: Final = frozenset({"true", "1", "on", "yes"})
_FALSE: Final = frozenset({"false", "0", "off", "no"})


@dataclass(frozen=True, slots=True)
class Setting:
    """One option, and what it should be.

    :ivar section: the section of the file, such as ``compute``
    :ivar values: one line each; none: the option stays unset on purpose, or each
        host has a value of its own
    :ivar why: one or two sentences for the comment above it
    :ivar service: who reads it
    :ivar default: what holds where the file does not say
    :ivar otherwise: what comes of any other value
    """

    section: str
    option: str
    values: tuple[str, ...]
    why: str
    service: str = COMPUTE
    default: str = ""
    otherwise: str = ""

    def __str__(self) -> str:
        """Return the option as Nova's documentation writes it."""
        return f"[{self.section}]{self.option}"

    @property
    def key(self) -> tuple[str, str]:
        """Section and option."""
        return (self.section, self.option)

    @property
    def remedy(self) -> str:
        """What to do where it has another value."""
        return (
            f"set {self} = {', '.join(self.values)} for {self.service}, and restart it"
        )

    def stated(self, value: str | None) -> str:
        """Return in words what a file says; None if it does not."""
        shown = f"not set, which means {self.default}" if value is None else value
        return f"{self} is {shown}"

    def fault(self, value: str | None) -> str | None:
        """Return what a wrong value in a file leads to, None if the value is right."""
        (wanted,) = self.values
        found = self.default if value is None else value
        if found == wanted or (
            wanted.lower() in {"true", "false"} and is_true(found) == is_true(wanted)
        ):
            return None
        return f"{self.stated(value)}: {self.otherwise}"


def is_true(value: str) -> bool:
    """Return whether a value is one that oslo.config reads as true."""
    return value.strip().lower() in _TRUE


def is_false(value: str) -> bool:
    """Return whether a value is one that oslo.config reads as false."""
    return value.strip().lower() in _FALSE


ISOLATED_AGGREGATES: Final = Setting(
    "scheduler",
    "enable_isolated_aggregate_filtering",
    ("True",),
    "Keeps VMs whose flavors know nothing of units off enrolled hosts.",
    SCHEDULER,
    default="False",
    otherwise="VMs without units come to elastic hosts",
)
FALLBACK_QUERY: Final = Setting(
    "workarounds",
    "disable_fallback_pcpu_query",
    ("False",),
    "Elastic hosts report VCPU alone; by this second query pinned VMs get in.",
    SCHEDULER,
    default="False",
    otherwise="no pinned VM comes to elastic hosts",
)
NO_FALLBACK_QUERY: Final = replace(
    FALLBACK_QUERY,
    values=("True",),
    why="Pinned VMs ask for PCPU alone; else they also get onto hosts that have no "
    "cpu sets.",
    otherwise="pinned VMs also come to hosts without cpu sets",
)
# Nova's default, so that hosts agree that have no option of it.
NUMA_PACKING: Final = Setting(
    "compute",
    "packing_host_numa_cells_allocation_strategy",
    ("False",),
    "Nova's default; nova-scheduler and nova-compute need the same. Before Nova 34 "
    "nova-compute chooses NUMA nodes in live migrations, and nova-scheduler foresees "
    "which.",
    SCHEDULER,
    default="False",
    otherwise="hosts have False by nova-perfvm host config, so that before Nova 34 "
    "live migrations take other NUMA nodes than nova-scheduler claims for them",
)
PIN_SET: Final = Setting(
    "DEFAULT",
    "vcpu_pin_set",
    (),
    "CPUs of an elastic host, which VMs of either kind may take. Deprecated, and the "
    "only option that leaves CPUs out without deciding their kind.",
)
