# SPDX-License-Identifier: Apache-2.0
"""What cgroups limit: those of a process, and all above them."""

from __future__ import annotations

from typing import Final, NamedTuple

from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.collect.collector import cgroup_of
from nova_perfvm.measure.observed.processes import upwards

ROOT: Final = "/sys/fs/cgroup"


class ControlGroup(NamedTuple):
    """A cgroup that has a controller.

    :ivar directory: of its files
    :ivar version: 1 or 2
    """

    directory: str
    version: int


def groups(
    collected: Collected, path: str, *controllers: str
) -> tuple[ControlGroup, ...]:
    """Return the cgroups of a process or thread that may limit it, its own first.

    Where a cgroup lacks the controller it limits nothing; nor does the root.

    :param path: of the directory of the process or thread
    :param controllers: the names that the controller has in both versions
    :raises NotReadError: when one on the way to the root was not read
    """
    text = collected.text(f"{path}/cgroup")
    for controller in controllers:
        version, own = cgroup_of(text, controller)
        if version == 1:
            *found, _root = upwards(f"{ROOT}/{controller}", own)
            return tuple(ControlGroup(directory, 1) for directory in found)
    if not version:
        raise NotReadError(f"{path}/cgroup", "it names no cgroup")
    *found, _root = upwards(ROOT, own)
    return tuple(
        ControlGroup(directory, 2)
        for directory in found
        if {*collected.text(f"{directory}/cgroup.controllers").split()} & {*controllers}
    )


def counters(text: str) -> dict[str, int]:
    """Return the counters of cpu.stat or memory.events; 0 of what is no number."""
    pairs = (line.partition(" ") for line in text.splitlines())
    return {name: int(value) if value.isdigit() else 0 for name, _, value in pairs}


def grown(collected: Collected, path: str, name: str) -> tuple[int, int]:
    """Return how much a counter grew between the looks, and what it was before.

    :raises NotReadError: when it was not read twice, or runs backwards
    """
    first, later = map(counters, collected.looks(path))
    before, grew = first.get(name, 0), later.get(name, 0) - first.get(name, 0)
    if grew < 0 or not later:
        raise NotReadError(path, f"{name} runs backwards, or the file is empty")
    return grew, before
