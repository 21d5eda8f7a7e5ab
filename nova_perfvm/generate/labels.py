# SPDX-License-Identifier: Apache-2.0
"""The label of a host: the metadata of its aggregate that names the host's classes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from shlex import quote
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.facts.snapshot import Aggregate
from nova_perfvm.policy import VMClass

_PREFIX: Final = "perfvm"


def label_of(classes: Iterable[VMClass]) -> str:
    """Return the value of the metadata that reserves hosts for these classes."""
    return ",".join(vm_class.name for vm_class in classes)


def label_commands(
    classes: Sequence[VMClass], hosts: Iterable[str], known: Collection[Aggregate] = ()
) -> tuple[str, ...]:
    """Return the commands that label hosts.

    :param hosts: names of hosts, quoted for a shell
    :param known: the cloud's aggregates: an aggregate with this label is used, or else
        the aggregate of the generated name gets the label
    """
    names = {vm_class.name for vm_class in classes}
    mine = next((a.name for a in known if a.labels == names), None)
    name = mine or "-".join((_PREFIX, *(c.name for c in classes)))
    there = any(a.name == name for a in known)
    label = quote(f"{const.CLASS_KEY}={label_of(classes)}")
    verb = "set" if there else "create"
    made = f"openstack aggregate {verb} --property {label} {quote(name)}"
    return (
        *(() if mine else (made,)),
        *(f"openstack aggregate add host {quote(name)} {host}" for host in hosts),
    )
