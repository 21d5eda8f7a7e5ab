# SPDX-License-Identifier: Apache-2.0
"""The flavors of a class: the pattern of their names, and their sizes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from nova_perfvm.documents.keys import EACH_ONCE, LEFT_OUT, count, some
from nova_perfvm.policy.limits import NAME_PATTERN
from nova_perfvm.policy.written_keys import NovaKeys

VCPUs = Annotated[int, count(1, 4096, "vCPUs")]
MemoryGB = Annotated[int, count(1, 1048576, "GiB")]
RootGB = Annotated[int, count(0, 1048576, "GiB")]


@dataclass(frozen=True, slots=True)
class FlavorSize:
    """One flavor of a class: vCPUs, memory in GiB and root disk in GiB.

    :ivar extra_specs: extra specs of this flavor, beside those of its class
    """

    vcpus: VCPUs
    memory_gb: MemoryGB
    root_gb: RootGB
    extra_specs: NovaKeys = field(default_factory=dict, hash=False, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True)
class FlavorTemplate:
    """The flavors of a class.

    :ivar name: pattern of the names, with the fields ``{class}``, ``{vcpus}``,
        ``{memory_gb}`` and ``{root_gb}``
    :ivar memory_gb: memory of each further flavor in GiB.  These flavors have the
        class's vCPUs and ``root_gb``; a class with ``vcpus`` moves them to ``sizes``
    :ivar root_gb: root disk in GiB of the flavors of ``memory_gb``
    :ivar sizes: the flavors
    """

    name: Annotated[str, NAME_PATTERN]
    memory_gb: Annotated[
        tuple[MemoryGB, ...],
        some("a list of memory sizes in GiB, such as [64, 128]"),
        EACH_ONCE,
    ] = field(default=(), kw_only=True, metadata=LEFT_OUT)
    root_gb: RootGB = field(default=0, kw_only=True, metadata=LEFT_OUT)
    sizes: Annotated[
        tuple[FlavorSize, ...], some("a list of {vcpus, memory_gb, root_gb}")
    ] = field(default=(), metadata=LEFT_OUT)

    def name_of(self, class_name: str, size: FlavorSize) -> str:
        """Return the flavor's name: the pattern filled for one size."""
        return self.name.format_map(
            {
                "class": class_name,
                "vcpus": size.vcpus,
                "memory_gb": size.memory_gb,
                "root_gb": size.root_gb,
            }
        )

    def of_memory(self, vcpus: int) -> FlavorTemplate:
        """Return a copy whose ``sizes`` include the flavors of ``memory_gb``."""
        made = [FlavorSize(vcpus, gb, self.root_gb) for gb in self.memory_gb]
        return FlavorTemplate(self.name, (*self.sizes, *made))
