# SPDX-License-Identifier: Apache-2.0
"""The policy: what an operator declares once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from nova_perfvm.exceptions import UnknownClassError
from nova_perfvm.policy.classes import VMClass
from nova_perfvm.policy.shapes import HostShape

if TYPE_CHECKING:
    from collections.abc import Collection

Placement = Literal["slots", "units", "none"]
ManagedHosts = Literal["all", "labelled"]

SCHEMA_VERSION = "1.0"


@dataclass(frozen=True)
class Policy:
    """Every key of ``perfvm.yaml``; see the sample file for their meaning.

    A policy may be built that makes no sense; :func:`nova_perfvm.policy.problems`
    lists what is wrong with it, and the loader never returns such a one.

    :ivar host_shapes: the host shapes the policy is written for, at least one
    :ivar classes: in the order of the file
    :ivar elastic_slots: child providers of every elastic host, where hosts are to
        grow; None for as many as VMs fit the largest host shape
    """

    host_shapes: tuple[HostShape, ...]
    classes: tuple[VMClass, ...]
    placement: Placement = "slots"
    managed_hosts: ManagedHosts = "all"
    elastic_slots: int | None = None
    schema_version: str = SCHEMA_VERSION

    @cached_property
    def by_name(self) -> dict[str, VMClass]:
        """The classes by name."""
        return {vm_class.name: vm_class for vm_class in self.classes}

    @cached_property
    def default_class(self) -> VMClass:
        """The class of flavors that name none and are not pinned."""
        return next(vm_class for vm_class in self.classes if vm_class.default)

    @cached_property
    def pinned_classes(self) -> tuple[VMClass, ...]:
        """The classes whose VMs own their CPUs."""
        return tuple(vm_class for vm_class in self.classes if vm_class.pinned)

    def get_class(self, name: str) -> VMClass:
        """Return a class by name.

        :raises UnknownClassError: when the policy declares none of that name
        """
        try:
            return self.by_name[name]
        except KeyError:
            raise UnknownClassError(name, self.by_name) from None

    @property
    def lists_flavors(self) -> bool:
        """Return whether it says which flavors there are; it need not."""
        return any(c.flavors and c.flavors.sizes for c in self.classes)

    def manages(self, labels: Collection[str]) -> bool:
        """Return whether the rules hold on a host.

        :param labels: the classes that aggregates reserve it for
        """
        return self.managed_hosts == "all" or bool(labels)

    def as_document(self) -> dict[str, Any]:
        """Return the policy as the policy file has it, every key written out."""
        shapes = [str(shape) for shape in self.host_shapes]
        return {
            "schema_version": self.schema_version,
            "host_shape": shapes[0] if len(shapes) == 1 else shapes,
            "placement": self.placement,
            "managed_hosts": self.managed_hosts,
            "classes": {
                vm_class.name: _class_document(vm_class) for vm_class in self.classes
            },
            "elastic": {"slots": self.elastic_slots},
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the policy's meaning, not of the file's comments, in hex."""
        text = json.dumps(
            self.as_document(), sort_keys=True, separators=(",", ":"), ensure_ascii=True
        )
        return hashlib.sha256(text.encode()).hexdigest()


def _class_document(vm_class: VMClass) -> dict[str, Any]:
    disk = vm_class.disk
    document: dict[str, Any] = {
        "default": vm_class.default,
        "vcpus": vm_class.vcpus,
        "former_vcpus": list(vm_class.former_vcpus),
        "cpu_policy": vm_class.cpu_policy,
        "cpu_thread_policy": vm_class.cpu_thread_policy,
        "smt": vm_class.smt,
        "emulator_threads": vm_class.emulator_threads,
        "numa_nodes": vm_class.numa_nodes,
        "max_per_host": vm_class.max_per_host,
        "exclusive": vm_class.exclusive,
        "vif_multiqueue": vm_class.vif_multiqueue,
        "mem_page_size": vm_class.mem_page_size,
        "host_traits": list(vm_class.host_traits),
        "disk": {
            "source": disk.source,
            "volume_type": disk.volume_type,
            "read_iops": disk.read_iops,
            "write_iops": disk.write_iops,
        },
    }
    if vm_class.flavors is not None:
        document["flavors"] = {"name": vm_class.flavors.name}
        if vm_class.flavors.sizes:
            document["flavors"]["sizes"] = [
                {
                    "vcpus": size.vcpus,
                    "memory_gb": size.memory_gb,
                    "root_gb": size.root_gb,
                }
                for size in vm_class.flavors.sizes
            ]
    return document
