# SPDX-License-Identifier: Apache-2.0
"""QEMU's processes and threads: where the kernel lets them run, and their memory."""

from __future__ import annotations

import enum
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed import cpus
from nova_perfvm.measure.observed.tables import values

_COMM: Final = re.compile(r"/proc/(\d+)(?:/task/(\d+))?/comm")
_VHOST: Final = re.compile(r"vhost-(\d+)")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_NODE: Final = re.compile(r"N(\d+)")
_COUNT: Final = re.compile(r"\d{1,18}")
_SIZE: Final = "kernelpagesize_kB"
# Files that are a VM's memory, not QEMU's own: huge pages, memfd, and where libvirt
# has the memory of VMs that share it with others.
_OF_VM: Final = ("/dev/", "/memfd:", "/var/lib/libvirt/qemu/ram/")


class Role(enum.Enum):
    """What a thread does."""

    VCPU = "vCPU"
    IOTHREAD = "I/O thread"
    VHOST = "vhost thread"
    EMULATOR = "emulator thread"
    KVM = "KVM's own thread"


# By the names of threads; of others the role is the emulator's.
_ROLES: Final = (
    (re.compile(r"CPU (\d+)/\w+"), Role.VCPU),
    (re.compile(r"IO iothread(\d+)"), Role.IOTHREAD),
    (re.compile(r"vhost-\d+"), Role.VHOST),
    # Since Linux 6.14 tasks of QEMU, which the first vCPU to run makes: it wakes once
    # in minutes to give back huge pages.  Names are cut to 15 characters.
    (re.compile(r"kvm-(?:nx-lpage|pit).*"), Role.KVM),
)


class Task(NamedTuple):
    """One thread.

    :ivar number: of the vCPU or the I/O thread; of others the thread's ID
    :ivar path: of its directory below /proc
    """

    role: Role
    number: int
    comm: str
    path: str

    def __str__(self) -> str:
        """Return how to call it."""
        return f"{self.role.value} {self.number}"


class Process(NamedTuple):
    """One process of QEMU.

    :ivar uuid: of its domain, empty if its command line names none
    :ivar tasks: its threads, and those that vhost runs for it
    """

    pid: int
    uuid: str
    tasks: tuple[Task, ...]

    @property
    def path(self) -> str:
        """Its directory."""
        return f"/proc/{self.pid}"

    def of(self, role: Role) -> tuple[Task, ...]:
        """Return its threads that do something."""
        return tuple(task for task in self.tasks if task.role is role)


class ProcessMemory(NamedTuple):
    """The memory of a VM that its process has in use.

    :ivar by_node: KiB on each NUMA node
    :ivar by_page: KiB in pages of each size in KiB
    """

    by_node: Mapping[int, int]
    by_page: Mapping[int, int]


def read(collected: Collected) -> tuple[Process, ...]:
    """Return the processes of QEMU, in the order of their numbers.

    :raises NotReadError: when processes were hidden from who collected
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
            # Up to Linux 6.3 a thread of the kernel, named after whom it works for.
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

    :raises NotReadError: when it was not read
    """
    return _options(collected.text(f"{process.path}/cmdline"))


def scheduling(collected: Collected, task: Task) -> tuple[int, int]:
    """Return a thread's nice value and its policy, which is 0 for SCHED_OTHER.

    :raises NotReadError: when that was not read
    """
    return _of_stat(collected, task.path, 19), _of_stat(collected, task.path, 41)


def began_s(collected: Collected, process: Process) -> float:
    """Return when a process began, in seconds since the host started.

    :raises NotReadError: when that was not read
    """
    # The kernel shows 100 ticks a second, whatever its own clock (USER_HZ).
    return _of_stat(collected, process.path, 22) / 100


def _of_stat(collected: Collected, path: str, number: int) -> int:
    """Return a field of ``stat`` by its number in proc(5)."""
    path = f"{path}/stat"
    # The second field is the name in brackets, which may have blanks and brackets.
    fields = collected.text(path).rpartition(")")[2].split()
    try:
        return int(fields[number - 3])
    except (IndexError, ValueError) as exc:
        raise NotReadError(path, "it cannot be understood") from exc


def allowed_cpus(collected: Collected, path: str) -> frozenset[int]:
    """Return the CPUs that a process or thread may run on.

    :param path: of its directory
    :raises NotReadError: when that was not read
    """
    return cpus.parsed(f"{path}/status", _status(collected, path, "Cpus_allowed_list"))


def swapped_kb(collected: Collected, process: Process) -> int:
    """Return how much of its memory is in swap, in KiB.

    :raises NotReadError: when that was not read
    """
    value = _status(collected, process.path, "VmSwap")
    return _count(f"{process.path}/status", value.removesuffix("kB").strip())


def _status(collected: Collected, path: str, name: str) -> str:
    value = values(collected.text(f"{path}/status")).get(name)
    if not value:
        raise NotReadError(f"{path}/status", f"it has no {name}")
    return value


def memory(collected: Collected, process: Process) -> ProcessMemory:
    """Return where the memory of a VM is.

    Files that QEMU has mapped, its program and libraries, are left out: they are
    shared by all VMs, and are on one node only.

    :raises NotReadError: when that was not read, or names no memory
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
            raise NotReadError(path, "it does not tell how large huge pages are")
        # Before Linux 3.14 small pages did not tell their size.
        size_kb = _count(path, area.get(_SIZE, "4"))
        for key, pages in area.items():
            if match := _NODE.fullmatch(key):
                used_kb = _count(path, pages) * size_kb
                by_node[int(match[1])] += used_kb
                by_page[size_kb] += used_kb
    if not by_node:
        raise NotReadError(path, "it names no memory on any node")
    return ProcessMemory(by_node, by_page)


def _count(path: str, text: str) -> int:
    if _COUNT.fullmatch(text) is None:
        raise NotReadError(path, f"expected a number, found {text!r:.40}")
    return int(text)
