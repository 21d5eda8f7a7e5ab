# SPDX-License-Identifier: Apache-2.0
"""The policy: what an operator declares once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Final, Literal

from nova_perfvm import constants as const
from nova_perfvm.exceptions import UnknownClassError
from nova_perfvm.policy import shapes
from nova_perfvm.policy.classes import VMClass
from nova_perfvm.policy.keys import Form, count, says, written
from nova_perfvm.policy.shapes import HostShape

Placement = Literal["slots", "units", "none"]
ManagedHosts = Literal["all", "labelled"]

SCHEMA_VERSION: Final = "1.0"

_SHAPE = "NUMA nodes x cores per node [x threads per core], such as 2x20"
Shape = Annotated[
    HostShape,
    says(pattern=rf"^\s*{shapes.PATTERN}\s*$", description=_SHAPE),
]
Slots = Annotated[int, count(1, len(const.CHILD_LETTERS), "slots")]
FindingCode = Annotated[
    str, says(description="the code of a finding, such as audit.flavor_changed")
]
# \Z: $ would let a newline follow.
_CLASS_NAME = {
    "pattern": r"^[a-z][a-z0-9_-]{0,62}\Z",
    "description": "a class name of lower-case letters, digits, - and _, starting with "
    "a letter, at most 63 long",
}


@dataclass(frozen=True, slots=True)
class Elastic:
    """What all elastic hosts have in common.

    :ivar slots: child providers of each, where hosts are to grow; None for as many
        as VMs fit the largest host shape
    """

    slots: Slots | None = None


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Every key of ``perfvm.yaml``; see the sample file for their meaning.

    A policy may be built that makes no sense; :func:`nova_perfvm.policy.problems`
    lists what is wrong with it, and the loader never returns such a one.

    :ivar host_shapes: the host shapes the policy is written for, at least one
    :ivar classes: in the order of the file
    :ivar accept: codes of findings that are to stay: notes, as far as they are no
        failures.  Not part of the digest, as it changes nothing that is enforced
    """

    schema_version: Annotated[
        Literal["1.0"], says(description=f'"{SCHEMA_VERSION}", in quotes')
    ]
    host_shapes: Annotated[
        tuple[Shape, ...],
        Form.ONE_OR_MORE,
        says(description=f"{_SHAPE}, or a list of such"),
    ] = field(default=(), metadata={"key": "host_shape"})
    placement: Placement = "slots"
    managed_hosts: ManagedHosts = "all"
    classes: Annotated[
        tuple[VMClass, ...],
        Form.BY_NAME,
        says(minProperties=1, propertyNames=_CLASS_NAME),
        says(description="a mapping of class names to classes"),
    ] = ()
    elastic: Elastic = Elastic()
    accept: Annotated[
        tuple[FindingCode, ...],
        says(
            uniqueItems=True,
            description="a list of codes of findings, such as [audit.flavor_changed]",
        ),
    ] = ()

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
        document: dict[str, Any] = written(Policy, self)
        return document

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the policy has enforced, in hex.

        Neither the file's comments nor what is accepted are part of it.
        """
        enforced = self.as_document()
        del enforced["accept"]
        text = json.dumps(
            enforced, sort_keys=True, separators=(",", ":"), ensure_ascii=True
        )
        return hashlib.sha256(text.encode()).hexdigest()
