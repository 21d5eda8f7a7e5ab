# SPDX-License-Identifier: Apache-2.0
"""The guest under check: facts collected in the guest, and its declared class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from nova_perfvm.measure.collect.collected import Collected
from nova_perfvm.measure.observed import cpus, disks, flows, interrupts, nics
from nova_perfvm.measure.observed.interrupts import Interrupts
from nova_perfvm.policy import VMClass


@dataclass(frozen=True)
class GuestSubject:
    """A guest, parsed from facts that its kernel shows.

    Properties raise :class:`NotReadError` when their files were not collected.

    :ivar vm_class: the guest's class; None if not given
    """

    collected: Collected
    vm_class: VMClass | None = None

    @cached_property
    def online(self) -> frozenset[int]:
        """The online CPUs."""
        return cpus.online(self.collected)

    @property
    def vcpus(self) -> int:
        """The number of online vCPUs."""
        return len(self.online)

    @cached_property
    def interrupts(self) -> Interrupts:
        """Interrupts counted between the looks; since boot after a single look."""
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
    def flows(self) -> int:
        """The number of TCP connections that were seen."""
        return flows.read(self.collected)
