# SPDX-License-Identifier: Apache-2.0
"""The policy: its keys, its digest, and the contradictions between classes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Final, Literal

from nova_perfvm import constants as const
from nova_perfvm.documents.document import as_document
from nova_perfvm.documents.keys import (
    EACH_ONCE,
    Expected,
    Form,
    count,
    read_value,
    some,
    written,
)
from nova_perfvm.documents.mistakes import KeyPath, Mistake
from nova_perfvm.exceptions import PerfVMError, UnknownClassError
from nova_perfvm.findings import LEVELS, Level
from nova_perfvm.policy import placements
from nova_perfvm.policy.classes import VMClass
from nova_perfvm.policy.room import shape_slots
from nova_perfvm.policy.shapes import HostShape

Placement = Literal["slots", "units", "cells", "none"]
# nova_perfvm.generate.host_options has their values and reasons.
HostOption = Literal[
    "rx_queue_size",
    "tx_queue_size",
    "num_pcie_ports",
    "mem_stats_period_seconds",
    "cpu_power_management",
    "num_nvme_discover_tries",
    "volume_use_multipath",
]

_SHAPE = "NUMA nodes x cores per node [x threads per core], such as 2x20"
Slots = Annotated[int, count(1, len(const.CHILD_LETTERS), "slots")]
Acceptable = Annotated[
    str,
    Expected(
        "the code of a finding that the audit lists under WARNING or UNKNOWN",
        lambda code: LEVELS.get(code, Level.FAILURE) is not Level.FAILURE,
    ),
]
# Beginnings of class names that would collide with the traits of enrolled hosts.
_PROJECT_NAMES: Final = tuple(
    trait.removeprefix(const.CUSTOM_PREFIX)
    for trait in (const.TRAIT_ELASTIC, const.TRAIT_CHILD, const.TRAIT_CELLS)
)


@dataclass(frozen=True, slots=True)
class Elastic:
    """Settings of all elastic hosts.

    :ivar slots: child providers per host, to leave room for larger hosts; None for as
        many as VMs fit the largest host shape
    """

    slots: Slots | None = None


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Every key of ``perfvm.yaml``; see the sample file for their meaning.

    The constructor accepts contradictory values: :func:`policy_mistakes` lists them.
    The loader returns only policies without mistakes.

    :ivar host_shapes: the host shapes the policy is written for, at least one
    :ivar classes: in the order of the file
    :ivar foreign_keys: whether ``flavor sync`` keeps extra specs that others have set
        on flavors of the policy, or unsets them
    :ivar host_options: options of nova-compute that ``host config`` writes
    :ivar accept: codes of findings that the operator accepts: the audit reports these
        as notes.  Failures cannot be accepted.  Not part of the digest
    """

    host_shapes: Annotated[
        tuple[HostShape, ...], Form.ONE_OR_MORE, some(f"{_SHAPE}, or a list of such")
    ] = field(default=(), metadata={"key": "host_shape"})
    placement: Placement = "slots"
    managed_hosts: Literal["all", "labelled"] = "all"
    classes: Annotated[
        tuple[VMClass, ...], Form.BY_NAME, some("a mapping of class names to classes")
    ] = ()
    elastic: Elastic = Elastic()
    foreign_keys: Literal["keep", "unset"] = "keep"
    host_options: Annotated[
        tuple[HostOption, ...],
        Expected("a list of options of nova-compute, such as [rx_queue_size]"),
        EACH_ONCE,
    ] = ()
    accept: Annotated[
        tuple[Acceptable, ...],
        Expected("a list of codes of findings, such as [audit.flavor_changed]"),
        EACH_ONCE,
    ] = ()

    @cached_property
    def by_name(self) -> dict[str, VMClass]:
        """The classes by name."""
        return {vm_class.name: vm_class for vm_class in self.classes}

    @cached_property
    def default_class(self) -> VMClass:
        """The class of unpinned VMs whose flavor names no class."""
        return next(vm_class for vm_class in self.classes if vm_class.default)

    @cached_property
    def pinned_classes(self) -> tuple[VMClass, ...]:
        """The classes whose VMs own their CPUs."""
        return tuple(vm_class for vm_class in self.classes if vm_class.pinned)

    def get_class(self, name: str) -> VMClass:
        """Return a class by name.

        :raises UnknownClassError: the policy declares no class of that name
        """
        try:
            return self.by_name[name]
        except KeyError:
            raise UnknownClassError(name, self.by_name) from None

    def pinned_class(self, name: str | None) -> VMClass:
        """Return the pinned class of a name, or without a name the only pinned class.

        :raises UnknownClassError: the policy declares no class of that name
        :raises PerfVMError: the named class is not pinned; or no name is given, and the
            policy has no pinned class or several
        """
        found = self.pinned_classes
        if name is not None:
            found = tuple(c for c in (self.get_class(name),) if c.pinned)
        if len(found) == 1:
            return found[0]
        wrong = "name a class" if name is None else f"class {name} is not pinned"
        names = ", ".join(c.name for c in self.pinned_classes) or "none"
        raise PerfVMError(f"{wrong}: the policy's pinned classes: {names}")

    @property
    def lists_flavors(self) -> bool:
        """Whether any class of the policy declares flavors."""
        return any(c.flavors and c.flavors.sizes for c in self.classes)

    def manages(self, labels: Collection[str]) -> bool:
        """Return whether the policy's rules apply to a host, by ``managed_hosts``.

        :param labels: names of the classes that aggregates reserve the host for
        """
        return self.managed_hosts == "all" or bool(labels)

    def as_document(self) -> dict[str, Any]:
        """Return the content of a policy file with every key, as plain values."""
        return as_document("policy", self, whole=True)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of all keys but ``accept``, whatever the file's layout."""
        enforced = self.as_document()
        del enforced["kind"], enforced["accept"]
        text = json.dumps(
            enforced, sort_keys=True, separators=(",", ":"), ensure_ascii=True
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def mistakes(self) -> Iterator[Mistake]:
        """Yield contradictions between classes, and between classes and host shapes."""
        for vm_class in self.pinned_classes:
            yield from self._shape_mistakes(vm_class, ("classes", vm_class.name))
        if sum(vm_class.default for vm_class in self.classes) != 1:
            message = "expected one class with default: true, that of general VMs"
            yield Mistake(("classes",), message)
        yield from self._name_mistakes()
        yield from placements.problems_of(
            self.placement, self.pinned_classes, self.host_shapes, self.elastic.slots
        )
        exclusive = [c.name for c in self.pinned_classes if c.exclusive != "none"]
        several = len(self.pinned_classes) > 1
        if exclusive and several and self.managed_hosts != "labelled":
            yield Mistake(
                ("managed_hosts",),
                f"{self.managed_hosts}, but pinned classes cannot be told apart by the "
                f"CPUs they pin, and {', '.join(exclusive)} must not meet another: use "
                "labelled, and reserve hosts by aggregate metadata perfvm:class",
            )

    def _shape_mistakes(self, vm_class: VMClass, path: KeyPath) -> Iterator[Mistake]:
        """Yield how a pinned class contradicts the host shapes: room, and threads."""
        smt_hosts = any(shape.threads > 1 for shape in self.host_shapes)
        if vm_class.cpu_thread_policy == "require" and not smt_hosts:
            yield Mistake(
                (*path, "cpu_thread_policy"),
                "require puts vCPUs on sibling threads, and no host_shape has SMT: "
                "use prefer or null, or add a shape such as 2x20x2",
            )
            return
        fits = any(shape_slots(vm_class, shape) for shape in self.host_shapes)
        splits = vm_class.cell_vcpus * vm_class.cells_per_vm == vm_class.vcpus
        if splits and not fits:
            isolates = vm_class.emulator_threads == "isolate"
            threads = replace(vm_class, smt="threads")
            of_threads = any(shape_slots(threads, shape) for shape in self.host_shapes)
            nodes = self._fitting_nodes(vm_class)
            yield Mistake(
                (*path, "emulator_threads" if isolates else "vcpus"),
                f"a VM needs {vm_class.cell_pcpus} CPUs per NUMA node ("
                f"{'with one for' if isolates else 'without'} emulator_threads: "
                f"isolate; numa_nodes: {vm_class.cells_per_vm}), and no host of "
                f"{', '.join(map(str, self.host_shapes))} offers that"
                + (f"; numa_nodes: {nodes} would fit" if nodes else "")
                + ("; smt: threads lets a vCPU own a thread" if of_threads else ""),
            )
        if vm_class.cpu_thread_policy == "isolate" and smt_hosts:
            yield Mistake(
                (*path, "cpu_thread_policy"),
                "isolate pins the sibling threads too and keeps Nova from SMT hosts "
                "that have cpu sets: use smt: cores with one thread per core in "
                "cpu_dedicated_set instead",
            )

    def _fitting_nodes(self, vm_class: VMClass) -> int | None:
        """Return the fewest NUMA nodes over which VMs of a class would fit a host."""
        shapes, elastic = self.host_shapes, self.elastic.slots
        for nodes in range(1, max(shape.cells for shape in shapes) + 1):
            other = replace(vm_class, numa_nodes=nodes)
            problems = placements.problems_of(self.placement, (other,), shapes, elastic)
            fits = any(shape_slots(other, shape) for shape in shapes)
            if fits and not any(other.mistakes()) and not any(problems):
                return nodes
        return None

    def _name_mistakes(self) -> Iterator[Mistake]:
        """Yield a mistake for each flavor or Placement name that two classes share."""
        flavors: dict[str, str] = {}
        for vm_class in self.classes:
            for name in vm_class.flavor_names:
                owner = flavors.setdefault(name, vm_class.name)
                if owner != vm_class.name:
                    where = ("classes", vm_class.name, "flavors", "name")
                    message = f"{name!r} is a flavor of class {owner} already"
                    yield Mistake(where, message)
        if len(self.pinned_classes) == 1:
            return
        owners: dict[str, str] = {}
        for vm_class in self.pinned_classes:
            name = vm_class.custom_name
            owner = owners.setdefault(name, vm_class.name)
            if owner != vm_class.name or name.startswith(_PROJECT_NAMES):
                yield Mistake(
                    ("classes", vm_class.name),
                    f"becomes {const.CUSTOM_PREFIX}{name} in Placement, which another "
                    "class or the elastic hosts use: give the class another name",
                )


def policy_mistakes(policy: Policy) -> list[Mistake]:
    """List every mistake of a policy; empty for a valid policy."""
    return read_value(Policy, written(policy))[1]
