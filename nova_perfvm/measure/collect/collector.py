# SPDX-License-Identifier: Apache-2.0
"""Collect facts about the performance setup of a host or a guest.

This file needs only Python 3.6 or later, and changes nothing on the machine: copy it
there, or run it through SSH::

    ssh vm1 python3 - guest < collector.py > vm1.json

The collector reads files below /proc, /sys and /etc, and runs ethtool and virsh, if
installed.  The key "unread" names unreadable files with the reason; root reads most.
Nothing is judged here.
"""

import argparse
import contextlib
import errno
import fnmatch
import itertools
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Iterable, Iterator, List, Sequence, Tuple

SCHEMA_VERSION = "1.0"
KINDS = ("host", "guest")
DEFAULT_INTERVAL_S = 5.0
MOST_INTERVAL_S = 3600.0
# Limit of one file or output.  Longer texts are left out: a truncated one misleads.
MOST_BYTES = 16 * 1024 * 1024
_PIECE = 64 * 1024
_TIMEOUT_S = 30.0
# Directories of ethtool, outside the PATH of ordinary users.
_MORE_PATH = ("/usr/sbin", "/sbin")


def _alternatives(pattern: str) -> Iterator[str]:
    """Expand the braces of a pattern, which has commas inside braces only."""
    parts = [part.split(",") for part in re.split("[{}]", pattern)]
    return map("".join, itertools.product(*parts))


# Shell patterns with {a,b}.  A name without a wildcard is read in every matching
# directory, and counts as unread where it is absent.
_COUNTERS = (
    "/proc/{interrupts,softirqs,stat,vmstat}",
    "/proc/net/{softnet_stat,snmp,dev,tcp,tcp6}",
    "/sys/class/net/*/statistics/{rx,tx}_{packets,dropped,bytes,errors,fifo_errors}",
    "/sys/class/net/*/statistics/rx_{missed,over}_errors",
    # A * behind a fixed name skips machines without the file, without "unread".
    "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle*/*_throttle_count",
    "/sys/devices/system/edac*/mc*/mc[0-9]*/{ce,ue}_count",
)
_CPU = "/sys/devices/system/cpu"
_NODE = "/sys/devices/system/node"
_CLOCK = "/sys/devices/system/clocksource/clocksource0"
_FILES = (
    "/proc/{cpuinfo,meminfo,cmdline,version}",
    "/proc/sys/kernel/{numa_balancing,osrelease,random/boot_id}",
    "/sys/kernel/mm/ksm/{run,merge_across_nodes,pages_sharing}",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/etc/{tuned/active_profile,os-release}",
    # The server's UUID in a guest; readable by root only.
    "/sys/class/dmi/id/product_uuid",
    "/sys/class/dmi*/id/{sys_vendor,product_name}",
    _CPU + "/{online,possible,present,offline,isolated,nohz_full}",
    _CPU + "/smt/{active,control}",
    _CPU + "/vulnerabilit*/*",
    _CPU + "/cpu[0-9]*/topology/{core_id,physical_package_id,thread_siblings_list}",
    _CPU + "/cpu[0-9]*/cpufreq/scaling_governor",
    _CPU + "/cpu[0-9]*/cpufreq*/{scaling_driver,scaling_max_freq,cpuinfo_max_freq}",
    _CPU + "/cpu[0-9]*/cpufreq*/{energy_performance_preference,base_frequency}*",
    _CPU + "/{intel_pstate*/no_turbo,intel_pstate*/max_perf_pct,cpufreq*/boost}*",
    _CPU + "/cpu0/cpuidle*/state[0-9]*/{name,latency,disable}",
    "/sys/devices/cpu_atom*/cpus",
    "/sys/module/kvm*/parameters/{ept,npt,enable_apicv,avic,halt_poll_ns}*",
    _NODE + "/{online,has_cpu,has_memory}",
    _NODE + "/node[0-9]*/{cpulist,meminfo,distance}",
    _NODE + "/node[0-9]*/hugepages/hugepages-*kB/{nr_hugepages,free_hugepages}",
    _CLOCK + "/{current_clocksource,available_clocksource}",
    "/proc/irq/[0-9]*/{smp_affinity_list,effective_affinity_list,node}",
    "/sys/class/net/*/{operstate,speed,address,mtu}",
    "/sys/class/net/*/device/{numa_node,local_cpulist}",
    "/sys/class/net/*/queues/rx-*/{rps_cpus,rps_flow_cnt}",
    "/sys/class/net/*/queues/tx-*/xps_cpus",
    "/sys/block/*/queue/{scheduler,nr_requests,nr_hw_queues,rotational}",
    "/sys/block/*/mq/[0-9]*/cpu_list",
)
_HOST_FILES = (
    "/etc/nova/provider_config/*.yaml",
    "/proc/sys/kernel/sched_rt_runtime_us",
)
_LISTINGS = ("/sys/class/net/*/device/msi_irqs",)
# Tells a directory without files from one that was not looked at.
_HOST_LISTINGS = ("/etc/nova/provider_config",)
_LINKS = (
    "/sys/class/net/*",
    "/sys/class/net/*/{device,device/driver}",
    "/sys/block/*",
    "/sys/block/*/device/driver",
)
_OF_NIC = ("ethtool -l", "ethtool -i", "ethtool -k", "ethtool -S", "ethtool -x")
# domstats shows the last result of virsh domdirtyrate-calc.
_OF_DOMAIN = tuple(_alternatives("virsh -r {dumpxml,schedinfo,domstats --dirtyrate}"))
_OF_PROCESS = ("cmdline", "comm", "stat", "status", "cgroup", "numa_maps")
_OF_TASK = ("comm", "stat", "status", "cgroup")
_OF_KERNEL_THREAD = ("comm", "status")
# How long a thread ran, and how long it waited for a CPU.
_COUNTERS_OF_TASK = "schedstat"
CGROUPS = "/sys/fs/cgroup"
# Files of the cpuset controller, by cgroup version.
_CPUSETS = {
    1: ("cpuset.cpus", "cpuset.mems"),
    2: tuple(_alternatives("cpuset.{cpus,mems}{,.effective}")),
}
# Files of limits by controller, and the counters beside them.
LIMITS_V1 = {
    "cpu": ("cpu.cfs_quota_us", "cpu.shares"),
    "blkio": tuple(_alternatives("blkio.throttle.{read,write}_{bps,iops}_device")),
}
_LIMITS_V2 = {
    "cpu": ("cpu.max", "cpu.weight", "cpu.idle"),
    "io": ("io.max",),
    "memory": ("memory.max",),
}
_COUNTERS_OF_CGROUP = {
    "cpu.max": "cpu.stat",
    "cpu.cfs_quota_us": "cpu.stat",
    "memory.max": "memory.events",
}

# Files in /sys/class/net that are no NICs.
_NO_DIRECTORIES = ("bonding_masters",)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TASK_COMM = re.compile(r"(/proc/\d+/task/\d+/)comm")
# Errors of reading a process or NIC that vanished.
_GONE = (errno.ENOENT, errno.ESRCH)

Document = Dict[str, Any]
# Called with (description, steps done, all steps).
Progress = Callable[[str, int, int], None]


class LocalMachine:
    """The machine that runs the collector.

    Other classes with these methods and values can stand in.  Methods raise OSError
    for unreadable files; its message is the reason under "unread".
    """

    def __init__(self) -> None:
        """Note the machine's name."""
        self.hostname = socket.gethostname()

    def now(self) -> str:
        """Return the time in UTC."""
        return datetime.now(timezone.utc).replace(microsecond=0).isoformat()

    def read(self, path: str) -> str:
        """Return the text of a file; OSError beyond MOST_BYTES."""
        data = bytearray()
        with open(path, "rb", buffering=0) as file:
            while len(data) <= MOST_BYTES:
                # Read in pieces: the kernel allocates the requested size for files in
                # /proc/sys.
                piece = file.read(_PIECE)
                if not piece:
                    break
                data += piece
        return _text(bytes(data))

    def names(self, path: str) -> List[str]:
        """Return the names in a directory."""
        return os.listdir(path)

    def link(self, path: str) -> str:
        """Return the target of a symbolic link."""
        return os.readlink(path)

    def run(self, command: Sequence[str]) -> Tuple[int, str, str]:
        """Return exit code, standard output and standard error of a command."""
        path = os.pathsep.join([os.environ.get("PATH", os.defpath), *_MORE_PATH])
        program = shutil.which(command[0], path=path)
        if program is None:
            raise OSError(errno.ENOENT, "no such command: " + command[0])
        process = subprocess.Popen(  # noqa: S603
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(os.environ, LC_ALL="C", PATH=path),
            start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate(timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            words = f"not over after {_TIMEOUT_S:g} s"
            raise OSError(errno.ETIMEDOUT, words) from None
        finally:
            if process.returncode is None:
                _kill(process)
        return process.returncode, _text(stdout), _text(stderr)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a command and its children."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    # A process blocked in the kernel survives SIGKILL.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=1)


def _reason(exc: OSError) -> str:
    """Return the message of an error, such as ``permission denied``."""
    words = exc.strerror or str(exc)
    return words[:1].lower() + words[1:]


def _text(data: bytes) -> str:
    if len(data) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"longer than {MOST_BYTES >> 20} MiB")
    return data.decode("utf-8", "replace")


class Collector:
    """Collects from a machine, and notes unreadable files with the reason.

    ``files``, ``later``, ``links``, ``commands`` and ``unread`` become the JSON's keys.
    """

    def __init__(self, machine: Any) -> None:
        """Begin with no files, links or outputs."""
        self._machine = machine
        self.files: Dict[str, str] = {}
        self.later: Dict[str, str] = {}
        self.links: Dict[str, str] = {}
        self.commands: Dict[str, Document] = {}
        self.unread: Dict[str, str] = {}

    def look(self, patterns: Iterable[str]) -> None:
        """Read files for the first look."""
        for path in self._paths(patterns):
            self._read(path)

    def look_again(self, patterns: Iterable[str]) -> None:
        """Read for the second look the files of the first."""
        for path in self._paths(patterns):
            if path in self.files:
                self._note(path, self.later, self._machine.read)

    def listings_and_links(self, listings: Iterable[str]) -> None:
        """Note the names in directories, and the targets of links."""
        for path in self._paths(listings):
            names = _sorted(self._names(path))
            if path not in self.unread:
                self.files[path] = "".join(name + "\n" for name in names)
        for path in self._paths(_LINKS):
            self._note(path, self.links, self._machine.link)

    def nics(self) -> None:
        """Ask ethtool about every interface."""
        for nic in _sorted(self._names("/sys/class/net")):
            for command in _OF_NIC:
                line = command + " " + nic
                if nic.startswith("-"):
                    self.unread[line] = "ethtool takes this name for an option"
                else:
                    self._run(line)

    def domains(self) -> None:
        """Ask libvirt for capabilities, and XML, limits and dirty rate of domains."""
        self._run("virsh -r capabilities")
        for line in self._run("virsh -r list --all --uuid").splitlines():
            if _UUID.fullmatch(line.strip()):
                for command in _OF_DOMAIN:
                    self._run(command + " " + line.strip())

    def processes(self) -> None:
        """Read files of QEMU's processes and vhost's kernel threads in /proc."""
        pids = self._numbers("/proc")
        if pids and "1" not in pids:
            self.unread["/proc"] = "processes of others are hidden: collect as root"
        for pid in pids:
            path = "/proc/" + pid
            try:
                comm = self._machine.read(path + "/comm").strip()
            except OSError as exc:
                if exc.errno not in _GONE:
                    self.unread[path + "/comm"] = _reason(exc)
                continue
            if comm.startswith("qemu-") or comm == "kvm":
                self._qemu(path)
            elif comm.startswith("vhost-"):
                self._of_process(path, _OF_KERNEL_THREAD)

    def task_counters(self) -> Tuple[str, ...]:
        """Return the paths of counters of the threads and cgroups in ``files``."""
        found = []
        for path in self.files:
            match = _TASK_COMM.fullmatch(path)
            if match:
                found.append(match.group(1) + _COUNTERS_OF_TASK)
            directory, _, name = path.rpartition("/")
            if name in _COUNTERS_OF_CGROUP:
                found.append(directory + "/" + _COUNTERS_OF_CGROUP[name])
        return tuple(found)

    def _qemu(self, path: str) -> None:
        """Read files of a process, its threads and their cgroups."""
        if not self._of_process(path, _OF_PROCESS):
            return
        tasks = [path + "/task/" + tid for tid in self._numbers(path + "/task")]
        alive = [task for task in tasks if self._of_process(task, _OF_TASK)]
        if self._of_process(path, ()):
            for text in {self.files.get(one + "/cgroup", "") for one in [path, *alive]}:
                self._cgroups(text)

    def _of_process(self, path: str, names: Sequence[str]) -> bool:
        """Read files of a process or task; drop all of them if it ends meanwhile.

        :returns: whether the process or task still exists
        """
        for name in names:
            self._read(path + "/" + name)
        try:
            self._machine.read(path + "/status")
        except OSError as exc:
            if exc.errno in _GONE:
                for known in (self.files, self.unread):
                    for name in [n for n in known if n.startswith(path + "/")]:
                        del known[name]
                return False
        return True

    def _cgroups(self, text: str) -> None:
        """Read the cpuset of a process, and the limits of its cgroups.

        :param text: text of /proc/PID/cgroup
        """
        version, groups = cgroup_of(text, "cpuset")
        # In version 2 the nearest cgroup with the controller sets the cpuset.
        for group in groups:
            if self._read_new(group, _CPUSETS[version]):
                break
        # The root cgroup has no limits.
        for controller, names in LIMITS_V1.items():
            version, groups = cgroup_of(text, controller)
            for group in groups[:-1] if version == 1 else ():
                self._read_new(group, names)
        _, groups = cgroup_of(text, "")
        for group in groups[:-1]:
            self._read_new(group, ("cgroup.controllers",))
            for controller in self.files.get(group + "/cgroup.controllers", "").split():
                self._read_new(group, _LIMITS_V2.get(controller, ()))

    def _read_new(self, directory: str, names: Iterable[str]) -> bool:
        """Read files of a cgroup, once: threads share the cgroups above them.

        :returns: whether a file was read, or the cgroup is out of reach
        """
        if ".." in directory.split("/"):
            self.unread[directory] = "outside of the collector's cgroup namespace"
            return True
        paths = [directory + "/" + name for name in names]
        for path in paths:
            if path not in self.files and path not in self.unread:
                self._read(path)
        return any(path in self.files for path in paths)

    def _read(self, path: str) -> None:
        self._note(path, self.files, self._machine.read)

    def _note(self, place: str, into: Document, get: Callable[[str], Any]) -> None:
        """Store the result of `get`, or the reason of its OSError under ``unread``."""
        try:
            into[place] = get(place)
        except OSError as exc:
            self.unread[place] = _reason(exc)

    def _run(self, line: str) -> str:
        """Run a command and return its standard output; empty on failure."""
        self._note(line, self.commands, self._output)
        done = self.commands.get(line, {"exit_code": 1})
        return "" if done["exit_code"] else done["stdout"]

    def _output(self, line: str) -> Document:
        exit_code, stdout, stderr = self._machine.run(line.split())
        return {"exit_code": exit_code, "stdout": stdout, "stderr": stderr}

    def _names(self, path: str) -> List[str]:
        """Return the names in a directory; empty if unreadable."""
        found: Dict[str, List[str]] = {}
        self._note(path, found, self._machine.names)
        return [name for name in found.get(path, ()) if name not in _NO_DIRECTORIES]

    def _numbers(self, path: str) -> List[str]:
        return _sorted(name for name in self._names(path) if name.isdigit())

    def _paths(self, patterns: Iterable[str]) -> Iterator[str]:
        for pattern in patterns:
            for alternative in _alternatives(pattern):
                yield from self._matching("", alternative.split("/")[1:])

    def _matching(self, above: str, parts: Sequence[str]) -> Iterator[str]:
        """Yield the paths below a directory that match the rest of a pattern."""
        if not parts:
            yield above
        elif "*" not in parts[0]:
            yield from self._matching(above + "/" + parts[0], parts[1:])
        else:
            for name in _sorted(fnmatch.filter(self._names(above), parts[0])):
                yield from self._matching(above + "/" + name, parts[1:])


def _sorted(names: Iterable[str]) -> List[str]:
    """Sort names by their numbers: cpu2 before cpu10."""
    return sorted(names, key=lambda n: [(len(p), p) for p in re.split(r"(\d+)", n)])


def cgroup_of(cgroup: str, controller: str) -> Tuple[int, List[str]]:
    """Find the cgroup of a controller: version 1 by name, else version 2.

    :param controller: empty for the cgroup of version 2
    :param cgroup: text of /proc/PID/cgroup
    :returns: the version, 0 without a cgroup; its directory and those above, the root
        last
    """
    version, root, path = 0, CGROUPS, ""
    for line in cgroup.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, own = rest.partition(":")
        if controller and controller in controllers.split(","):
            version, root, path = 1, CGROUPS + "/" + controller, own
            break
        if number == "0" and not controllers:
            version, path = 2, own
    names = [name for name in path.split("/") if name]
    above = range(len(names), -1, -1) if version else ()
    return version, ["/".join([root, *names[:n]]) for n in above]


def collect(
    kind: str,
    interval_s: float = DEFAULT_INTERVAL_S,
    machine: Any = None,
    progress: Progress = lambda *_: None,
) -> Document:
    """Collect a machine's files, links and command outputs.

    :param kind: host or guest
    :param interval_s: seconds between two looks at counters; 0 for one look
    :param machine: None for this machine
    :param progress: called before each step
    """
    machine = machine or LocalMachine()
    found = Collector(machine)
    files = _FILES + (_HOST_FILES if kind == "host" else ())
    listings = _LISTINGS + (_HOST_LISTINGS if kind == "host" else ())
    steps: List[Tuple[str, Callable[[], None]]] = [
        ("files of CPUs, memory, NICs and disks", lambda: found.look(files)),
        ("directories and links", lambda: found.listings_and_links(listings)),
        ("ethtool", found.nics),
    ]
    if kind == "host":
        steps += [
            ("domains of libvirt", found.domains),
            ("QEMU's processes", found.processes),
        ]
    for number, (what, read) in enumerate(steps):
        progress(what, number, len(steps) + 1)
        read()
    # Counters come last, so that the collector's own work is not counted.
    progress(f"counters, for {interval_s:g} s", len(steps), len(steps) + 1)
    taken_at, began = machine.now(), time.monotonic()
    counters = _COUNTERS + found.task_counters()
    found.look(counters)
    passed_s = 0.0
    if interval_s:
        time.sleep(max(0.0, began + interval_s - time.monotonic()))
        passed_s = round(time.monotonic() - began, 3)
        found.look_again(counters)
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": kind,
        "hostname": machine.hostname,
        "taken_at": taken_at,
        "interval_s": passed_s,
        "files": found.files,
        "later": found.later,
        "links": found.links,
        "commands": found.commands,
        "unread": found.unread,
    }


def dumps(document: Document) -> str:
    """Return the collected document as JSON."""
    return json.dumps(document, indent=1) + "\n"


def interval(text: str) -> float:
    """Parse an interval of the command line.

    :raises argparse.ArgumentTypeError: unless seconds from 0 to MOST_INTERVAL_S
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST_INTERVAL_S:
        message = f"{text!r}: expected seconds from 0 to {MOST_INTERVAL_S:g}"
        raise argparse.ArgumentTypeError(message)
    return value


def main(arguments: Any = None) -> int:
    """Collect this machine's facts and print them as JSON.

    :returns: exit code: 0; 1 if printing fails; 130 after Ctrl-C
    """
    parser = argparse.ArgumentParser(
        prog="collector.py",
        description=(__doc__ or "").split("\n", 1)[0],
        epilog="Changes nothing. Unreadable files are listed under unread.",
    )
    parser.add_argument("kind", choices=KINDS, help="what this machine is")
    parser.add_argument(
        "--interval",
        type=interval,
        default=DEFAULT_INTERVAL_S,
        metavar="SECONDS",
        help="time between the two looks at counters, 0 for one look (default: "
        "%(default)g)",
    )
    options = parser.parse_args(arguments)
    try:
        sys.stdout.write(dumps(collect(options.kind, options.interval)))
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return 130
    except OSError as exc:
        sys.stderr.write(f"cannot write: {_reason(exc)}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
