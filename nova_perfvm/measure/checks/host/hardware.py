# SPDX-License-Identifier: Apache-2.0
"""The host is a real machine with sound hardware and full clocks.

Ratios to the host's own baseline do not show a host that slows VMs and baseline
alike.  Clock files are described in Linux, Documentation/admin-guide/pm.
"""

import re
from collections import defaultdict
from typing import Final

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Seen, check_of, each_of
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed import cpu_flags, interrupts
from nova_perfvm.measure.observed.cpus import CPU

_DMI: Final = "/sys/class/dmi/id"
_VIRTUAL: Final = re.compile(r"QEMU|KVM|OpenStack|VMware|Xen|Virtual Machine|Bochs")
# Counters that stand still on sound hardware, and the fault that moves them.
_STILL: Final = {
    r".*/thermal_throttle/\w+_throttle_count": "it is too hot: clocks drop",
    r".*/mc/mc\d+/[cu]e_count": "memory errors interrupt CPUs",
}
# Values of KVM parameters that slow down VMs on any host.
_KVM: Final = (
    ("kvm_intel", "ept", ("N", "0"), Level.FAILURE),
    ("kvm_amd", "npt", ("N", "0"), Level.FAILURE),
    ("kvm_intel", "enable_apicv", ("N", "0"), Level.NOTE),
    ("kvm", "halt_poll_ns", ("0",), Level.NOTE),
)
_DEEP_US: Final = 50
# Drivers whose governor "powersave" is dynamic; for others it is the lowest clock.
_DYNAMIC = ("intel_pstate", "amd-pstate-epp")
# Turbo Boost Max ranks equal cores a few percent apart; efficiency cores are further
# below the fastest.
_UNEQUAL = 0.9
_SAVING: Final = ("power", "balance_power")
# Files whose values slow down CPUs; {} stands for the CPU's number.
_SLOW: Final = (
    ("intel_pstate/no_turbo", ("1",), "turbo is off"),
    ("cpufreq/boost", ("0",), "boost is off"),
    ("intel_pstate/max_perf_pct", tuple(map(str, range(100))), "clocks are capped"),
    ("cpu{}/cpufreq/energy_performance_preference", _SAVING, "a CPU saves power"),
)


@check_of(
    14,
    "hypervisor.hardware",
    source=f"{cpu_flags.PATH}; {_DMI}; /sys/module/kvm*; {CPU}/cpu0/cpuidle",
    remedy="options MODULE NAME=1 in /etc/modprobe.d, then drain and reboot; "
    "tuned-adm profile latency-performance, if the tail of latency matters",
)
def hardware(host: HostSubject) -> Seen:
    """Host and hardware are real, and sound."""
    yield from each_of((_real, lambda h: faults(h.collected), _kvm, _idle_states), host)


def _real(host: HostSubject) -> Seen:
    if not host.collected.text(cpu_flags.PATH).startswith("processor"):
        raise NotReadError(cpu_flags.PATH, "it names no CPU")
    paths = (f"{_DMI}/{name}" for name in ("sys_vendor", "product_name"))
    told = " ".join(host.collected.files.get(path, "").strip() for path in paths)
    virtual = told if _VIRTUAL.search(told) else ""
    if "hypervisor" in cpu_flags.told(host.collected):
        virtual = "flag hypervisor"
    if virtual:
        reason = f"the host is a VM itself and shares CPUs with others ({virtual})"
        raise NotReadError(f"{cpu_flags.PATH}; {_DMI}", reason)
    yield Level.OK, told.strip() or "no flag hypervisor"
    text = host.collected.text(cpu_flags.PATH)
    codes = sorted({*re.findall(r"^microcode\s*: *(.*)$", text, re.MULTILINE)})
    if len(codes) > 1:
        yield Level.WARNING, f"CPUs have several microcodes: {', '.join(codes)}"


def faults(collected: Collected) -> Seen:
    """Yield an unread file for fault counters that moved between the looks, else OK."""
    files, later = collected.files, collected.later
    was, now = (_exceptions(look.get(interrupts.PATH, "")) for look in (files, later))
    if now > was:
        yield NotReadError(interrupts.PATH, f"{now - was} machine check exceptions")
    for pattern, words in _STILL.items():
        paths = [
            path
            for path, text in files.items()
            if re.fullmatch(pattern, path) and text.strip().isdecimal()
        ]
        moved = [path for path in paths if later.get(path, files[path]) != files[path]]
        if moved:
            path, number = moved[0], len(moved)
            counted = f"from {files[path].strip()} to {later[path].strip()}"
            reason = f"{words}: {counted} between the looks, {number} counters in all"
            yield NotReadError(path, f"{reason}; figures are in doubt")
        elif paths:
            yield Level.OK, f"{len(paths)} counters of faults stand"


def _exceptions(text: str) -> int:
    return sum(sum(n.values()) for name, n, _ in interrupts.rows(text) if name == "MCE")


def _kvm(host: HostSubject) -> Seen:
    for module, name, bad, level in _KVM:
        path = f"/sys/module/{module}/parameters/{name}"
        value = host.collected.files.get(path, "").strip()
        if value in bad:
            yield level, f"{name} of {module} is {value}"


def _idle_states(host: HostSubject) -> Seen:
    files = host.collected.files
    for path, text in host.collected.matching("*/cpuidle/state*/latency").items():
        state = path.rpartition("/")[0]
        on = files.get(f"{state}/disable", "").strip() == "0"
        if on and text.strip().isdecimal() and int(text) > _DEEP_US:
            name = files.get(f"{state}/name", "?").strip()
            yield Level.NOTE, f"a CPU wakes up from {name} in {text.strip()} us"


def _owned(host: HostSubject) -> frozenset[int]:
    """Return the online CPUs that VMs own; all online CPUs if VMs own none."""
    sets = host.cpu_sets
    dedicated = sets.dedicated
    if sets.saves_power == "governor" and host.pinned:
        # Nova sets the governor powersave on dedicated CPUs without a VM.
        dedicated = frozenset().union(*map(host.cpus_of, host.pinned))
    return (dedicated & host.online) or host.online


@check_of(
    85,
    "hypervisor.governor",
    source=f"{CPU}/cpu*/cpufreq/scaling_governor",
    remedy="tuned-adm profile cpu-partitioning (or virtual-host); until then "
    "cpupower frequency-set -g performance",
)
def governor(host: HostSubject) -> Seen:
    """CPUs that VMs own have the governor performance."""
    found: dict[tuple[Level, str], set[int]] = defaultdict(set)
    for cpu in _owned(host):
        base = f"{CPU}/cpu{cpu}/cpufreq"
        name = host.collected.text(f"{base}/scaling_governor").strip()
        driver = host.collected.files.get(f"{base}/scaling_driver", "").strip()
        level = Level.OK if name == "performance" else Level.WARNING
        if name == "powersave" and driver not in {"", *_DYNAMIC}:
            level, name = Level.FAILURE, f"{name}, the lowest clock with {driver},"
        found[level, name].add(cpu)
    for (level, name), cpus in found.items():
        yield level, f"{name} on CPUs {format_cpus(cpus)}"


@check_of(
    86,
    "hypervisor.frequency",
    source=f"{CPU}/cpu*/cpufreq, {CPU}/intel_pstate, {CPU}/cpufreq/boost",
    remedy="cpupower frequency-set --max cpuinfo_max_freq; echo 0 > no_turbo, "
    "1 > boost, 100 > max_perf_pct, performance > energy_performance_preference; "
    "CPUs of one kind in cpu_dedicated_set",
)
def frequency(host: HostSubject) -> Seen:
    """Nothing caps the clocks of CPUs, and a VM has CPUs of one kind."""
    cpus = sorted(_owned(host))
    top, most, base = (
        _khz(host, cpus, name)
        for name in ("cpuinfo_max_freq", "scaling_max_freq", "base_frequency")
    )
    if not top:
        path = f"{CPU}/cpu*/cpufreq/cpuinfo_max_freq"
        raise NotReadError(path, "not read; perhaps the firmware sets clocks")
    yield Level.OK, f"{len(top)} CPUs may reach their full clocks"
    for cpu, khz in sorted(most.items(), key=lambda item: item[1]):
        if khz < top.get(cpu, 0):
            # A cap at or above the base clock may be intended, for equal clocks.
            level = Level.FAILURE if khz < base.get(cpu, 0) else Level.WARNING
            of = f"{khz / 1e6:.2f} of {top[cpu] / 1e6:.2f} GHz"
            yield level, f"CPU {cpu} is held at {khz / top[cpu]:.0%}, {of}"
    for domain in host.pinned:
        own = {cpu: top[cpu] for cpu in host.cpus_of(domain) if cpu in top}
        fast = max(own.values(), default=0)
        slow = [cpu for cpu, khz in own.items() if khz < _UNEQUAL * fast]
        if slow:
            shown = f"CPUs {format_cpus(slow)} of {domain.name} are of a slower kind"
            yield Level.FAILURE, shown
    for pattern, values, words in _SLOW:
        for path in {f"{CPU}/{pattern.format(cpu)}" for cpu in cpus}:
            text = host.collected.files.get(path, "").strip()
            if text in values:
                yield Level.WARNING, f"{words}: {path} is {text}"


def _khz(host: HostSubject, cpus: list[int], name: str) -> dict[int, int]:
    files = host.collected.files
    texts = {cpu: files.get(f"{CPU}/cpu{cpu}/cpufreq/{name}", "") for cpu in cpus}
    return {cpu: int(text) for cpu, text in texts.items() if text.strip().isdecimal()}
