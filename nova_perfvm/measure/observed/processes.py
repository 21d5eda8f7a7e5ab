# SPDX-License-Identifier: Apache-2.0
"""QEMU's processes and threads, with their allowed CPUs and memory."""

from __future__ import annotations

import enum
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from nova_perfvm.measure.collect.collected import Collected, NotReadError, values
from nova_perfvm.measure.observed import cpus

_COMM: Final = re.compile(r"/proc/(\d+)(?:/task/(\d+))?/comm")
_VHOST: Final = re.compile(r"vhost-(\d+)")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_NODE: Final = re.compile(r"N(\d+)")
_COUNT: Final = re.compile(r"\d{1,18}")
_SIZE: Final = "kernelpagesize_kB"
# Paths of files that back a VM's memory: huge pages, memfd, and libvirt's directory
# for shared memory.
_OF_VM: Final = ("/dev/", "/memfd:", "/var/lib/libvirt/qemu/ram/")


class Role(enum.Enum):
    """The purpose of a thread."""

    VCPU = "vCPU"
    IOTHREAD = "I/O thread"
    VHOST = "vhost thread"
    EMULATOR = "emulator thread"
    KVM = "KVM's own thread"


# Roles by thread name; all other threads are the emulator's.
_ROLES: Final = (
    (re.compile(r"CPU (\d+)/\w+"), Role.VCPU),
    (re.compile(r"IO iothread(\d+)"), Role.IOTHREAD),
    (re.compile(r"vhost-\d+"), Role.VHOST),
    # Since Linux 6.14 the first vCPU to run creates these as tasks of QEMU; they wake
    # every few minutes to reclaim huge pages.  Names are cut to 15 characters.
    (re.compile(r"kvm-(?:nx-lpage|pit).*"), Role.KVM),
)


class Task(NamedTuple):
    """One thread.

    :ivar number: number of the vCPU or I/O thread; the thread's ID for other roles
    :ivar path: directory of the thread in /proc
    """

    role: Role
    number: int
    comm: str
    path: str

    def __str__(self) -> str:
        """Return role and number, such as ``vCPU 3``."""
        return f"{self.role.value} {self.number}"


class Process(NamedTuple):
    """One process of QEMU.

    :ivar uuid: the domain's UUID; empty if the command line has none
    :ivar tasks: QEMU's threads and vhost's threads for this VM
    """

    pid: int
    uuid: str
    tasks: tuple[Task, ...]

    @property
    def path(self) -> str:
        """The directory of the process."""
        return f"/proc/{self.pid}"

    def of(self, role: Role) -> tuple[Task, ...]:
        """Return the threads with a role."""
        return tuple(task for task in self.tasks if task.role is role)


class ProcessMemory(NamedTuple):
    """Memory of a VM in use by its process.

    :ivar by_node: {NUMA node: KiB}
    :ivar by_page: {page size in KiB: KiB}
    """

    by_node: Mapping[int, int]
    by_page: Mapping[int, int]


def read(collected: Collected) -> tuple[Process, ...]:
    """Return the processes of QEMU, ordered by PID.

    :raises NotReadError: when /proc hid processes from the collector (hidepid)
    """
    if reason := collected.unread.get("/proc"):
        raise NotReadError("/proc", reason)
    pids: set[int] = set()
    tasks: dict[int, list[Task]] = defaultdict(list)
    for path, text in collected.files.items():
        match = _COMM.fullmatch(path)
        if match is None:
            continue
        pid, tid = int(match[1]), match[2]
        comm, directory = text.strip(), path.rpartition("/")[0]
        owner = None if tid else _VHOST.fullmatch(comm)
        if owner:
            # Up to Linux 6.3 vhost-PID is a kernel thread, named after QEMU's PID.
            tasks[int(owner[1])].append(Task(Role.VHOST, pid, comm, directory))
            continue
        pids.add(pid)
        if tid:
            tasks[pid].append(_task(comm, int(tid), directory))
    return tuple(
        Process(pid, _uuid(collected, pid), tuple(tasks[pid])) for pid in sorted(pids)
    )


def _task(comm: str, tid: int, path: str) -> Task:
    for pattern, role in _ROLES:
        if match := pattern.fullmatch(comm):
            return Task(role, int(match[1]) if match.groups() else tid, comm, path)
    return Task(Role.EMULATOR, tid, comm, path)


def _uuid(collected: Collected, pid: int) -> str:
    value = _options(collected.files.get(f"/proc/{pid}/cmdline", "")).get("uuid", "")
    return value.lower() if _UUID.fullmatch(value) else ""


def _options(cmdline: str) -> dict[str, str]:
    words = pairwise(cmdline.split("\0"))
    return {word.lstrip("-"): value for word, value in words if word.startswith("-")}


def options(collected: Collected, process: Process) -> dict[str, str]:
    """Return the last value of each option of QEMU's command line.

    :raises NotReadError: when the command line was not read
    """
    return _options(collected.text(f"{process.path}/cmdline"))


def scheduling(collected: Collected, task: Task) -> tuple[int, int]:
    """Return a thread's nice value and scheduling policy (0: SCHED_OTHER).

    :raises NotReadError: when the thread's stat was not read
    """
    return _of_stat(collected, task.path, 19), _of_stat(collected, task.path, 41)


def began_s(collected: Collected, process: Process) -> float:
    """Return a process's start time, in seconds since boot.

    :raises NotReadError: when the process's stat was not read
    """
    # USER_HZ: the kernel shows 100 ticks a second for any clock rate.
    return _of_stat(collected, process.path, 22) / 100


def _of_stat(collected: Collected, path: str, number: int) -> int:
    """Return a field of ``stat`` by its number in proc(5)."""
    path = f"{path}/stat"
    # The second field, the name in brackets, may contain blanks and brackets.
    fields = collected.text(path).rpartition(")")[2].split()
    try:
        return int(fields[number - 3])
    except (IndexError, ValueError) as exc:
        raise NotReadError(path, "it cannot be understood") from exc


def allowed_cpus(collected: Collected, path: str) -> frozenset[int]:
    """Return the CPUs allowed to a process or thread.

    :param path: directory of the process or thread in /proc
    :raises NotReadError: when the status of the process or thread was not read
    """
    return cpus.parsed(f"{path}/status", _status(collected, path, "Cpus_allowed_list"))


def swapped_kb(collected: Collected, process: Process) -> int:
    """Return a process's memory in swap, in KiB.

    :raises NotReadError: when the process's status was not read
    """
    value = _status(collected, process.path, "VmSwap")
    return _count(f"{process.path}/status", value.removesuffix("kB").strip())


def _status(collected: Collected, path: str, name: str) -> str:
    value = values(collected.text(f"{path}/status")).get(name)
    if not value:
        raise NotReadError(f"{path}/status", f"it has no {name}")
    return value


def memory(collected: Collected, process: Process) -> ProcessMemory:
    """Return a VM's memory by NUMA node and by page size.

    Mapped files (QEMU's program and libraries) are left out: all VMs share them, and
    they are on one node.

    :raises NotReadError: when numa_maps was not read, or lists no memory
    """
    path = f"{process.path}/numa_maps"
    by_node: Counter[int] = Counter()
    by_page: Counter[int] = Counter()
    for line in collected.text(path).splitlines():
        # 7f02 bind:1 file=/dev/hugepages/ram huge dirty=4 N1=4 kernelpagesize_kB=2048
        area = dict(word.partition("=")[::2] for word in line.split()[2:])
        huge = "huge" in area
        if not huge and not area.get("file", _OF_VM[0]).startswith(_OF_VM):
            continue
        if huge and _SIZE not in area:
            raise NotReadError(path, "the size of huge pages is missing")
        # Before Linux 3.14 numa_maps has no size for small pages.
        size_kb = _count(path, area.get(_SIZE, "4"))
        for key, pages in area.items():
            if match := _NODE.fullmatch(key):
                used_kb = _count(path, pages) * size_kb
                by_node[int(match[1])] += used_kb
                by_page[size_kb] += used_kb
    if not by_node:
        raise NotReadError(path, "no memory on a NUMA node found")
    return ProcessMemory(by_node, by_page)


def _count(path: str, text: str) -> int:
    if _COUNT.fullmatch(text) is None:
        raise NotReadError(path, f"expected a number, found {text!r:.40}")
    return int(text)
