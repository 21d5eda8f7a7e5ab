# SPDX-License-Identifier: Apache-2.0
"""Limits of cgroups, and the CPUs and memory nodes that cgroups allow."""

from __future__ import annotations

from typing import Final, NamedTuple

from nova_perfvm.measure.collect.collected import Collected, NotReadError, values
from nova_perfvm.measure.collect.collector import CGROUPS, cgroup_of
from nova_perfvm.measure.observed import cpus

ROOT: Final = CGROUPS


class ControlGroup(NamedTuple):
    """A cgroup with a controller.

    :ivar directory: the directory of the cgroup's files
    :ivar version: 1 or 2
    """

    directory: str
    version: int


class CPUSet(NamedTuple):
    """The CPUs and memory nodes that a cgroup allows its threads.

    :ivar source: the directory of the cgroup
    """

    cpus: frozenset[int]
    mems: frozenset[int]
    source: str


def groups(
    collected: Collected, path: str, *controllers: str
) -> tuple[ControlGroup, ...]:
    """Return the cgroups that may limit a process or thread, its own first.

    The root and cgroups without the controller limit nothing.

    :param path: directory of the process or thread in /proc
    :param controllers: names of the controller in cgroups version 1 and 2
    :raises NotReadError: when a cgroup on the way to the root was not read
    """
    text = collected.text(f"{path}/cgroup")
    for controller in controllers:
        version, found = cgroup_of(text, controller)
        if version == 1:
            return tuple(ControlGroup(directory, 1) for directory in found[:-1])
    if not version:
        raise NotReadError(f"{path}/cgroup", "it names no cgroup")
    return tuple(
        ControlGroup(directory, 2)
        for directory in found[:-1]
        if {*collected.text(f"{directory}/cgroup.controllers").split()} & {*controllers}
    )


def cpu_set(collected: Collected, path: str) -> CPUSet:
    """Return the CPUs and memory nodes that cgroups allow a process or thread.

    :param path: directory of the process or thread in /proc
    :raises NotReadError: when the cpuset was not read
    """
    version, found = cgroup_of(collected.text(f"{path}/cgroup"), "cpuset")
    if not version:
        raise NotReadError(f"{path}/cgroup", "it names no cgroup with a cpuset")
    suffix = "" if version == 1 else ".effective"
    for directory in found:
        names = [f"{directory}/cpuset.{kind}{suffix}" for kind in ("cpus", "mems")]
        if all(name in collected.files for name in names):
            allowed, mems = (cpus.numbers(collected, name) for name in names)
            return CPUSet(allowed, mems, directory)
    first = f"{found[0]}/cpuset.cpus{suffix}"
    raise NotReadError(first, collected.unread.get(first, "it was not collected"))


def grown(collected: Collected, path: str, name: str) -> tuple[int, int]:
    """Return a counter's growth, and its value at the first look; 0 for an absent one.

    :param path: path of cpu.stat or memory.events
    :raises NotReadError: when the file was not read twice, is empty or runs backwards
    """
    looks = [values(text, " ") for text in collected.looks(path)]
    told = (look.get(name, "") for look in looks)
    before, after = (int(count) if count.isdecimal() else 0 for count in told)
    if after < before or not looks[1]:
        raise NotReadError(path, f"{name} runs backwards, or the file is empty")
    return after - before, before
