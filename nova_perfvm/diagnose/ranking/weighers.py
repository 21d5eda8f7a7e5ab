# SPDX-License-Identifier: Apache-2.0
"""Nova's weighers, and ours: what each gives a host, and which options tell them.

As in ``nova/scheduler/weights`` of Nova 34.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import UNKNOWN, Server
from nova_perfvm.generate.options import WEIGHT_CLASSES, FileOptions
from nova_perfvm.policy import Policy
from nova_perfvm.rules import packing

SECTION: Final = "filter_scheduler"
ALL: Final = "nova.scheduler.weights.all_weighers"
# Hosts with more free PCI devices are alike to PCIWeigher.
_MOST_PCI: Final = 99


@dataclass(frozen=True)
class Case:
    """A host that a request may come to.

    :ivar moving: the server that is to move; None for a new one
    """

    policy: Policy
    request: Request
    view: HostView
    moving: Server | None
    options: FileOptions


_Raw = Callable[[Case], float | None]


@dataclass(frozen=True)
class Weigher:
    """What adds to a host's weight.

    :ivar column: what tables call it, and its multiplier begins with
    :ivar raw: what it gives a host; None where that is not known
    :ivar default: Nova's, of the multiplier
    :ivar minval: where its scale begins; None: at the least that a host has
    :ivar maxval: where its scale ends; None: at the most that a host has
    :ivar sign: by which it multiplies, too
    :ivar floor: the least that its option may be
    """

    column: str
    name: str
    raw: _Raw
    default: float = 1.0
    minval: float | None = None
    maxval: float | None = None
    sign: int = 1
    floor: float = -math.inf

    @property
    def key(self) -> str:
        """What metadata of an aggregate calls the multiplier."""
        return f"{self.column}_weight_multiplier"

    @property
    def option(self) -> tuple[str, str]:
        """Section and name of the multiplier's option."""
        if self.column in {"metrics", "perfvm"}:
            return self.column, "weight_multiplier"
        return SECTION, self.key

    def normalised(self, raws: Sequence[float | None]) -> tuple[float, ...]:
        """Return what hosts get on one scale; 0 for all where one is not known.

        As ``nova.weights.normalize``: the scale is that of the hosts that passed.
        """
        known = [raw for raw in raws if raw is not None]
        # Ours does not let Nova cut off what is below 0.
        if self.minval is not None and self.maxval is None:
            known = [max(raw, self.minval) for raw in known]
        low = min(known, default=0) if self.minval is None else self.minval
        high = max(known, default=0) if self.maxval is None else self.maxval
        if low == high or len(known) < len(raws):
            return (0.0,) * len(raws)
        return tuple((raw - low) / (high - low) for raw in known)


def weighers_of(options: FileOptions | None) -> tuple[Weigher, ...]:
    """Return what weighs hosts.

    :param options: of nova-scheduler's nova.conf; None: Nova's weighers and ours
    """
    names = WEIGHT_CLASSES.values[0] if options is None else ALL
    if options is not None:
        names = options.get(WEIGHT_CLASSES.key, ALL).replace("\n", ",")
    return tuple(w for name in names.split(",") for w in _weighers(name.strip()))


def _weighers(path: str) -> Iterator[Weigher]:
    name = path.rpartition(".")[2]
    if path == ALL:
        yield from _NOVAS
    elif name:
        known = {weigher.name: weigher for weigher in (*_NOVAS, _OURS)}
        # Somebody's own may add whatever it is.
        yield known.get(name) or Weigher(name, name, lambda _: None, math.inf)


def number(options: FileOptions, option: tuple[str, str], default: float) -> float:
    """Return what an option says.

    :raises PerfVMError: when it is no number
    """
    text = options.get(option)
    try:
        return default if text is None else float(text)
    except ValueError:
        raise PerfVMError(
            f"nova.conf: [{option[0]}]{option[1]}: found {text!r}, expected a number, "
            "without which nova-scheduler does not start"
        ) from None


def _reported(name: str) -> _Raw:
    """Return what reads something that the compute reports."""
    return lambda case: case.view.compute.reported.get(name)


def _cpu(case: Case) -> float | None:
    found = case.view.compute.reported
    inventory = case.view.root.inventories.get("VCPU")
    ratio = found.get(
        "cpu_allocation_ratio", inventory.allocation_ratio if inventory else 1.0
    )
    used = found.get("vcpus_used")
    return None if used is None else case.view.compute.vcpus * ratio - used


def _disk(case: Case) -> float | None:
    found = case.view.compute.reported
    free = found.get("free_disk_gb")
    if free is None:
        return None
    return min(free, found.get("disk_available_least", free)) * 1024


def _pci(case: Case) -> float | None:
    free = case.view.compute.reported.get("free_pci")
    return None if free is None else _MOST_PCI + 1 - min(free, _MOST_PCI)


def _group(case: Case) -> float | None:
    # A new server is taken to be in none.
    return None if case.request.server else 0.0


def _cell(case: Case) -> float | None:
    return None if case.moving else 0.0


def _image(case: Case) -> float | None:
    # Nova looks at the option here, whatever aggregates say.
    option = (SECTION, "image_props_weight_multiplier")
    return None if number(case.options, option, 0.0) else 0.0


def _metrics(case: Case) -> float | None:
    text = case.options.get(("metrics", "weight_setting"), "")
    pairs = [pair.partition("=") for pair in text.split(",")]
    setting = [(name.strip(), ratio) for name, equals, ratio in pairs if equals]
    found = case.view.compute.reported
    try:
        return sum((found[f"metrics.{k}"] * float(v) for k, v in setting), 0.0)
    except (KeyError, ValueError):
        return None


def _slots(case: Case) -> float | None:
    if case.options.get(("perfvm", "mode")) == "observe":
        return packing.NEUTRAL
    if case.view.compute.cells_source == UNKNOWN:
        return None
    facts, found = case.view.facts, case.view.compute.reported
    facts = facts._replace(
        vcpus_used=int(found.get("vcpus_used", facts.vcpus_used)),
        num_instances=int(found.get("running_vms", facts.num_instances)),
    )
    return packing.score(case.policy, case.request.facts, facts)


_MILLION: Final = 1_000_000.0
# Nova loads them as the directory lists them.
_NOVAS: Final = (
    Weigher("cpu", "CPUWeigher", _cpu, minval=0),
    Weigher("ram", "RAMWeigher", _reported("free_ram_mb"), minval=0),
    Weigher("disk", "DiskWeigher", _disk, minval=0),
    Weigher(
        "hypervisor_version",
        "HypervisorVersionWeigher",
        _reported("hypervisor_version"),
    ),
    Weigher("num_instances", "NumInstancesWeigher", _reported("running_vms"), 0.0),
    Weigher("io_ops", "IoOpsWeigher", _reported("io_workload"), -1.0, minval=0),
    Weigher(
        "build_failure",
        "BuildFailureWeigher",
        _reported("failed_builds"),
        _MILLION,
        sign=-1,
    ),
    Weigher("pci", "PCIWeigher", _pci, floor=0.0),
    Weigher("soft_affinity", "ServerGroupSoftAffinityWeigher", _group, floor=0.0),
    Weigher(
        "soft_anti_affinity", "ServerGroupSoftAntiAffinityWeigher", _group, floor=0.0
    ),
    Weigher("cross_cell_move", "CrossCellWeigher", _cell, _MILLION),
    Weigher("image_props", "ImagePropertiesWeigher", _image, 0.0),
    Weigher("metrics", "MetricsWeigher", _metrics),
)
_OURS: Final = Weigher(
    "perfvm", "PerfVMWeigher", _slots, 1000.0, minval=0, maxval=packing.FULL_SCALE
)
