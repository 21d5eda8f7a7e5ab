# SPDX-License-Identifier: Apache-2.0
"""Options of nova.conf and placement.conf that a placement scheme needs.

:mod:`nova_perfvm.generate.options` lists all options in one table.
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
    """An option of a configuration file with its required value.

    :ivar section: the section of the file, such as ``compute``
    :ivar values: the required values, a line each; empty if the option is to stay
        unset, or differs from host to host
    :ivar why: one or two sentences for the comment above the option
    :ivar service: name of the service that reads the option
    :ivar default: the service's default
    :ivar otherwise: the consequence of another value
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
        """The instruction to set the required value."""
        return (
            f"set {self} = {', '.join(self.values)} for {self.service}, and restart it"
        )

    def stated(self, value: str | None) -> str:
        """Return the option with a file's value, in words; None means not set."""
        shown = f"not set, which means {self.default}" if value is None else value
        return f"{self} is {shown}"

    def fault(self, value: str | None) -> str | None:
        """Return the consequence of a file's wrong value; None for the right value."""
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
    "Elastic hosts report VCPU alone; this second query offers them to pinned VMs.",
    SCHEDULER,
    default="False",
    otherwise="no pinned VM comes to elastic hosts",
)
NO_FALLBACK_QUERY: Final = replace(
    FALLBACK_QUERY,
    values=("True",),
    why="Pinned VMs ask for PCPU alone; else they also get onto hosts that have no "
    "cpu sets. Leave it out while pinned VMs run on such hosts.",
    otherwise="pinned VMs also come to hosts without cpu sets",
)
# Nova's default, so that hosts without the option agree, too.
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
