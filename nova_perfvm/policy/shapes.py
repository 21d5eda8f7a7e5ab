# SPDX-License-Identifier: Apache-2.0
"""The shape of a host: NUMA nodes, cores per node, threads per core."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nova_perfvm.exceptions import ShapeError

PATTERN = r"[1-9]\d{0,3}x[1-9]\d{0,3}(x[1-9]\d?)?"


@dataclass(frozen=True, slots=True, order=True)
class HostShape:
    """A host whose NUMA nodes are equal.

    :ivar cells: NUMA nodes of the host
    :ivar cores: physical cores per NUMA node
    :ivar threads: hardware threads per core; 1 where SMT is off
    """

    cells: int
    cores: int
    threads: int = 1

    @classmethod
    def parse(cls, text: str) -> HostShape:
        """Read ``2x20`` (one thread per core) or ``2x20x2``.

        :raises ShapeError: when the text has another form
        """
        if re.fullmatch(PATTERN, text.strip()) is None:
            raise ShapeError(text)
        return cls(*map(int, text.split("x")))

    def __str__(self) -> str:
        """Return the text that :meth:`parse` reads."""
        base = f"{self.cells}x{self.cores}"
        return base if self.threads == 1 else f"{base}x{self.threads}"

    @property
    def cpus(self) -> int:
        """CPUs of the whole host, as the kernel counts them (threads)."""
        return self.cells * self.cores * self.threads

    def cell_cpus(self, smt: str) -> int:
        """CPUs per NUMA node that VMs may own: cores, or threads with ``threads``."""
        return self.cores * (self.threads if smt == "threads" else 1)
