# SPDX-License-Identifier: Apache-2.0
"""QEMU's processes and threads: where the kernel lets them run, and their memory.

jc's parsers are used raw: what they make of the values fails at a thread in
``State: D (disk sleep)``, and takes twice the time for the maps of memory.  It has
none for cgroups.
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from jc.parsers import proc_pid_numa_maps, proc_pid_status

from nova_perfvm import cpuset
from nova_perfvm.exceptions import CPUSetError
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.collect.collector import cgroup_of

_COMM: Final = re.compile(r"/proc/(\d+)(?:/task/(\d+))?/comm")
_VCPU: Final = re.compile(r"CPU (\d+)/\w+")
_IOTHREAD: Final = re.compile(r"IO iothread(\d+)")
_VHOST: Final = re.compile(r"vhost-(\d+)")
# Since Linux 6.14 tasks of QEMU, which the first vCPU to run makes: it wakes once in
# minutes to give back huge pages.  Names are cut to 15 characters.
_OF_KVM: Final = ("kvm-nx-lpage", "kvm-pit")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_NODE: Final = re.compile(r"N(\d+)")
_COUNT: Final = re.compile(r"\d{1,18}")
_SIZE: Final = "kernelpagesize_kB"
# Files that are a VM's memory, not QEMU's own: huge pages, memfd, and where libvirt
# has the memory of VMs that share it with others.
_OF_VM: Final = ("/dev/", "/memfd:", "/var/lib/libvirt/qemu/ram/")
_SMALL_KB: Final = "4"
# In /proc/PID/stat behind the name: starttime, the 22nd field of all.
_STARTED: Final = 19


class Role(enum.Enum):
    """What a thread does."""

    VCPU = "vCPU"
    IOTHREAD = "I/O thread"
    VHOST = "vhost thread"
    EMULATOR = "emulator thread"
    KVM = "KVM's own thread"


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
    :ivar source: where that was read
    """

    by_node: Mapping[int, int]
    by_page: Mapping[int, int]
    source: str


class CPUSet(NamedTuple):
    """What a cgroup lets its threads use.

    :ivar source: the directory of the cgroup
    """

    cpus: frozenset[int]
    mems: frozenset[int]
    source: str


def read(collected: Collected) -> tuple[Process, ...]:
    """Return the processes of QEMU, in the order of their numbers.

    :raises NotReadError: when processes were hidden from who collected
    """
    if reason := collected.unread.get("/proc"):
        raise NotReadError("/proc", reason)
    threads: dict[int, list[Task]] = {}
    vhost: dict[int, list[Task]] = {}
    for path, text in collected.files.items():
        match = _COMM.fullmatch(path)
        if match is None:
            continue
        pid, comm, directory = int(match[1]), text.strip(), path.rpartition("/")[0]
        owner = _VHOST.fullmatch(comm)
        if match[2]:
            threads.setdefault(pid, []).append(_task(comm, int(match[2]), directory))
        elif owner:
            # Up to Linux 6.3 a thread of the kernel, named after whom it works for.
            task = Task(Role.VHOST, pid, comm, directory)
            vhost.setdefault(int(owner[1]), []).append(task)
        else:
            threads.setdefault(pid, [])
    return tuple(
        Process(pid, _uuid(collected, pid), (*threads[pid], *vhost.get(pid, ())))
        for pid in sorted(threads)
    )


def _task(comm: str, tid: int, path: str) -> Task:
    if match := _VCPU.fullmatch(comm):
        return Task(Role.VCPU, int(match[1]), comm, path)
    if match := _IOTHREAD.fullmatch(comm):
        return Task(Role.IOTHREAD, int(match[1]), comm, path)
    role = Role.VHOST if _VHOST.fullmatch(comm) else Role.EMULATOR
    if comm.startswith(_OF_KVM):
        role = Role.KVM
    return Task(role, tid, comm, path)


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


class Scheduling(NamedTuple):
    """How the kernel schedules a thread: SCHED_OTHER is policy 0."""

    nice: int
    policy: int


def scheduling(collected: Collected, task: Task) -> Scheduling:
    """Return how a thread is scheduled, by ``/proc/PID/task/TID/stat``.

    :raises NotReadError: when that was not read
    """
    path = f"{task.path}/stat"
    # proc(5): behind the name, which may have blanks, are fields 3 and on.
    fields = collected.text(path).rpartition(")")[2].split()
    try:
        return Scheduling(int(fields[19 - 3]), int(fields[41 - 3]))
    except (IndexError, ValueError) as exc:
        raise NotReadError(path, "it cannot be understood") from exc


def allowed_cpus(collected: Collected, path: str) -> frozenset[int]:
    """Return the CPUs that a process or thread may run on.

    :param path: of its directory
    :raises NotReadError: when that was not read
    """
    return _allowed(collected, f"{path}/status", "Cpus_allowed_list")


def allowed_nodes(collected: Collected, path: str) -> frozenset[int]:
    """Return the NUMA nodes that it may take memory from.

    :raises NotReadError: when that was not read
    """
    return _allowed(collected, f"{path}/status", "Mems_allowed_list")


def began_s(collected: Collected, process: Process) -> float:
    """Return when a process began, in seconds since the host started.

    :raises NotReadError: when that was not read
    """
    path = f"{process.path}/stat"
    # The name before it is in brackets, and may have some itself; the kernel shows
    # 100 ticks a second, whatever its own clock (USER_HZ).
    fields = collected.text(path).rpartition(")")[2].split()
    if len(fields) <= _STARTED or not fields[_STARTED].isdecimal():
        raise NotReadError(path, "it does not tell when it began")
    return int(fields[_STARTED]) / 100


def swapped_kb(collected: Collected, process: Process) -> int:
    """Return how much of its memory is in swap, in KiB.

    :raises NotReadError: when that was not read
    """
    path = f"{process.path}/status"
    value = _raw(proc_pid_status.parse, collected, path).get("VmSwap", "")
    return _count(path, value.removesuffix("kB").strip())


def _allowed(collected: Collected, path: str, name: str) -> frozenset[int]:
    value = _raw(proc_pid_status.parse, collected, path).get(name)
    if not value:
        raise NotReadError(path, f"it has no {name}")
    return _parsed(path, value)


def _raw(parse: Callable[..., Any], collected: Collected, path: str) -> Any:
    """Return what a parser of jc finds in a file.

    :raises NotReadError: when the file was not read, or cannot be understood
    """
    text = collected.text(path)
    try:
        return parse(text, raw=True, quiet=True)
    except ValueError as exc:
        raise NotReadError(path, f"it cannot be understood: {exc}") from exc


def _parsed(path: str, text: str) -> frozenset[int]:
    try:
        return cpuset.parse(text.strip())
    except CPUSetError as exc:
        raise NotReadError(path, str(exc)) from exc


def memory(collected: Collected, process: Process) -> ProcessMemory:
    """Return where the memory of a VM is.

    Files that QEMU has mapped, its program and libraries, are left out: they are
    shared by all VMs, and are on one node only.

    :raises NotReadError: when that was not read, or names no memory
    """
    path = f"{process.path}/numa_maps"
    by_node: Counter[int] = Counter()
    by_page: Counter[int] = Counter()
    for area in _raw(proc_pid_numa_maps.parse, collected, path):
        huge = "huge" in area.get("options", ())
        if not huge and not area.get("file", _OF_VM[0]).startswith(_OF_VM):
            continue
        if huge and _SIZE not in area:
            raise NotReadError(path, "it does not tell how large huge pages are")
        size_kb = _count(path, area.get(_SIZE, _SMALL_KB))
        for key, pages in area.items():
            if match := _NODE.fullmatch(key):
                used_kb = _count(path, pages) * size_kb
                by_node[int(match[1])] += used_kb
                by_page[size_kb] += used_kb
    if not by_node:
        raise NotReadError(path, "it names no memory on any node")
    return ProcessMemory(dict(by_node), dict(by_page), path)


def _count(path: str, text: str) -> int:
    if _COUNT.fullmatch(text) is None:
        raise NotReadError(path, f"expected a number, found {text!r:.40}")
    return int(text)


def cpu_set(collected: Collected, path: str) -> CPUSet:
    """Return what the cgroup of a process or thread lets it use.

    :param path: of the directory of the process or thread
    :raises NotReadError: when that was not read
    """
    version, group = cgroup_of(collected.text(f"{path}/cgroup"), "cpuset")
    if not version:
        raise NotReadError(f"{path}/cgroup", "it names no cgroup with a cpuset")
    root = "/sys/fs/cgroup/cpuset" if version == 1 else "/sys/fs/cgroup"
    suffix = "" if version == 1 else ".effective"
    for directory in upwards(root, group):
        names = [f"{directory}/cpuset.{kind}{suffix}" for kind in ("cpus", "mems")]
        if all(name in collected.files for name in names):
            cpus, mems = (_parsed(name, collected.files[name]) for name in names)
            return CPUSet(cpus, mems, directory)
    first = f"{root}{group}/cpuset.cpus{suffix}"
    raise NotReadError(first, collected.unread.get(first, "it was not collected"))


def upwards(root: str, group: str) -> Iterator[str]:
    """Yield the directory of a cgroup, then those above it."""
    path = group.rstrip("/")
    while path:
        yield f"{root}{path}"
        path = path.rpartition("/")[0]
    yield root
