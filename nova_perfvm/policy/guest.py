# SPDX-License-Identifier: Apache-2.0
"""Topology, real-time vCPUs and address bits of a guest: keys of a class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from nova_perfvm import cpuset
from nova_perfvm.documents.keys import count, matching
from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.exceptions import CPUSetError

# The form that nova-api takes (nova.api.validation.extra_specs.hw).
Mask = Annotated[
    str,
    matching(
        r"\^?\d+(-\d+)?(,\^?\d+(-\d+)?)*",
        "a list of vCPUs in quotes, such as '^0-1' for all but the first two",
    ),
]


@dataclass(frozen=True, slots=True)
class GuestTopology:
    """The sockets and threads that the guest sees.

    :ivar sockets: ``numa_nodes`` for a socket per NUMA node of the guest; None leaves
        it to Nova, which gives each vCPU a socket
    :ivar threads: threads per core; None for 1
    """

    sockets: Literal["numa_nodes"] | None = None
    threads: Annotated[int, count(1, 8, "threads per core")] | None = None

    def declared(self, cells: int) -> tuple[int | None, int]:
        """Return sockets, None for any number, and threads of VMs on so many nodes."""
        return cells if self.sockets else None, self.threads or 1

    def misfits(self, smt: str, cell_sizes: Iterable[int]) -> Iterator[Mistake]:
        """Yield why VMs cannot have such threads.

        :param cell_sizes: vCPUs of the class's sizes on a NUMA node
        """
        threads = self.threads or 1
        if threads > 1 and smt != "threads":
            yield Mistake(
                ("threads",),
                f"{threads}: the guest would take {threads} of its vCPUs for one core, "
                "and each has a core of its own: remove it, or use smt: threads",
            )
        for size in cell_sizes:
            if size % threads:
                message = f"{size} vCPUs of a NUMA node are not whole cores of"
                yield Mistake(("threads",), f"{message} {threads} threads: change one")


@dataclass(frozen=True, slots=True)
class Realtime:
    """Some vCPUs run with a real-time priority of the host.

    :ivar mask: these vCPUs; those that it leaves out run QEMU's own threads
    """

    mask: Mask

    def misfits(self, sizes: Iterable[int], *, emulated: bool) -> Iterator[Mistake]:
        """Yield why VMs of so many vCPUs cannot have the mask.

        :param emulated: whether ``emulator_threads`` places QEMU's own threads
        """
        for size in sizes:
            found = realtime_vcpus(self.mask, size)
            if found is None:
                words = f"{self.mask} leaves no vCPU, or goes beyond 0-{size - 1}"
                yield Mistake(("mask",), words)
            elif len(found) == size and not emulated:
                yield Mistake(
                    ("mask",),
                    f"{self.mask} leaves none of {size} vCPUs to QEMU's own threads: "
                    "leave vCPUs out, or set emulator_threads",
                )


@dataclass(frozen=True, slots=True)
class MaxPhysAddr:
    """How many bits the guest's physical addresses have: 40 address 1 TiB.

    :ivar mode: ``passthrough`` for as many as the host's, or ``emulate``
    :ivar bits: number of bits, with ``emulate``
    """

    mode: Literal["passthrough", "emulate"]
    bits: Annotated[int, count(32, 64, "bits")] | None = None

    def mistakes(self) -> Iterator[Mistake]:
        """Yield why libvirt refuses mode and bits (qemuValidateDomainDefCpu)."""
        emulates = self.mode == "emulate"
        if emulates == (self.bits is None):
            words = "missing with" if emulates else "only for"
            yield Mistake(("bits",), f"{words} mode: emulate: libvirt refuses it")


def realtime_vcpus(mask: str, vcpus: int) -> frozenset[int] | None:
    """Return the real-time vCPUs of a VM by its mask; None if Nova refuses the mask.

    As in nova.virt.hardware, ``get_realtime_cpu_constraint``.
    """
    every = cpuset.parse(f"0-{vcpus - 1}")
    if mask.startswith("^") or not mask:
        mask = f"0-{vcpus - 1},{mask}".rstrip(",")
    try:
        found = cpuset.parse(mask)
    except CPUSetError:
        return None
    return found if found and found <= every else None
