# SPDX-License-Identifier: Apache-2.0
"""The guest that is checked: what was read in it, and what it should be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from nova_perfvm.measure.collect.collected import Collected
from nova_perfvm.measure.observed import cpus, disks, flows, interrupts, nics
from nova_perfvm.measure.observed.interrupts import Interrupts
from nova_perfvm.policy import VMClass


@dataclass(frozen=True)
class GuestSubject:
    """A guest as its kernel shows it.

    Whatever was not read raises :class:`NotReadError` when it is asked for.

    :ivar vm_class: the class that the guest is of; None if nobody said so
    """

    collected: Collected
    vm_class: VMClass | None = None

    @cached_property
    def online(self) -> cpus.CPUs:
        """The CPUs that run."""
        return cpus.online(self.collected)

    @property
    def vcpus(self) -> int:
        """How many of them there are."""
        return len(self.online.numbers)

    @cached_property
    def interrupts(self) -> Interrupts:
        """What fired between the looks; since boot, if there was but one."""
        return interrupts.read(self.collected)

    @cached_property
    def nics(self) -> tuple[nics.NIC, ...]:
        """The network interfaces that are devices."""
        text = self.collected.files.get(interrupts.PATH)
        return nics.read(
            self.collected, None if text is None else interrupts.parse(text)
        )

    @cached_property
    def disks(self) -> tuple[disks.DiskDevice, ...]:
        """The disks that are devices."""
        return disks.read(self.collected)

    @cached_property
    def flows(self) -> flows.Flows:
        """The TCP connections that were seen."""
        return flows.read(self.collected)
