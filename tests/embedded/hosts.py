# SPDX-License-Identifier: Apache-2.0
"""Pretended hosts whose NUMA nodes differ."""

import dataclasses
import itertools

from nova.tests.fixtures import libvirt as fakelibvirt
from oslo_utils import units

from tests.cloud.hosts import HostSettings


@dataclasses.dataclass(frozen=True)
class UnevenHostSettings(HostSettings):
    """HostSettings of a host whose NUMA nodes may differ.

    :ivar uneven: cores and memory in GiB of each NUMA node where these differ; as
        many cores as ``shape`` has, without SMT
    """

    uneven: tuple[tuple[int, int], ...] = ()

    def node_of(self, cpu):
        """Return the NUMA node of a CPU, both counted from 0."""
        if self.uneven:
            ends = itertools.accumulate(cores for cores, _ in self.uneven)
            return next(node for node, end in enumerate(ends) if cpu < end)
        return super().node_of(cpu)

    def connection(self, hostname, directory):
        """Return the pretended libvirt of a host with this hardware."""
        connection = super().connection(hostname, directory)
        if self.uneven:
            self._divide(connection.host_info.numa_topology.cells)
        return connection

    def _divide(self, cells):
        """Give each of libvirt's NUMA nodes its own cores and memory."""
        cpus = iter([cpu for cell in cells for cpu in cell.cpus])
        for cell, (cores, memory_gb) in zip(cells, self.uneven, strict=True):
            cell.cpus = list(itertools.islice(cpus, cores))
            cell.memory = memory_gb * units.Mi
            pages = [(4, cell.memory // 4)]
            cell.mempages = fakelibvirt.create_mempages(pages)
