# SPDX-License-Identifier: Apache-2.0
"""The host is a real machine, and its hardware does what it can."""

import re
from collections.abc import Iterator
from typing import Final

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import Check, judged, passed, skipped
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import cpu_flags

_DMI: Final = "/sys/class/dmi/id"
_VIRTUAL: Final = re.compile(r"QEMU|KVM|OpenStack|VMware|Xen|Virtual Machine|Bochs")
# Counters that stand still on sound hardware, and what it means if they do not.
_STILL: Final = (
    (
        r".*/thermal_throttle/(core|package)_throttle_count",
        "it is too hot: clocks drop",
    ),
    (r".*/mc/mc\d+/[cu]e_count", "its memory has errors, which interrupt CPUs"),
)
# Parameters of KVM that cost, however a host is set up otherwise.
_KVM: Final = (
    ("kvm_intel", "ept", ("N", "0"), Level.FAILURE),
    ("kvm_amd", "npt", ("N", "0"), Level.FAILURE),
    ("kvm_intel", "enable_apicv", ("N", "0"), Level.NOTE),
    ("kvm", "halt_poll_ns", ("0",), Level.NOTE),
)
_DEEP_US: Final = 50


def find(subject: HostSubject) -> Iterator[Finding]:
    """Look at what it is, at counters of faults, and at KVM."""
    yield _real(subject)
    yield from _still(subject)
    files = subject.collected.files
    for module, name, bad, level in _KVM:
        path = f"/sys/module/{module}/parameters/{name}"
        value = files.get(path, "").strip()
        if value in bad:
            remedy = f"options {module} {name}=1 in /etc/modprobe.d; drain and reboot"
            yield judged(
                f"{module} {name}",
                "on",
                value,
                path,
                holds=False,
                otherwise=level,
                remedy=remedy,
            )
    deep = []
    for path, text in subject.collected.matching("*/cpuidle/state*/latency").items():
        state = path.rpartition("/")[0]
        on = files.get(f"{state}/disable", "").strip() == "0"
        if on and text.strip().isdecimal() and int(text) > _DEEP_US:
            deep.append(f"{files.get(f'{state}/name', '?').strip()} {text.strip()} us")
    if deep:
        yield Finding(
            "",
            Level.NOTE,
            "idle states",
            f"a CPU at rest takes long to wake up: {', '.join(deep)}",
            "",
            "/sys/devices/system/cpu/cpu0/cpuidle/state*",
            "tuned-adm profile latency-performance, if the tail of latency matters",
        )


def _real(subject: HostSubject) -> Finding:
    name, expected = "machine", "a physical one"
    text = subject.collected.text(cpu_flags.PATH)
    if not text.startswith("processor"):
        raise NotReadError(cpu_flags.PATH, "it names no CPU")
    files = subject.collected.files
    told = [
        files.get(f"{_DMI}/{n}", "").strip() for n in ("sys_vendor", "product_name")
    ]
    if "hypervisor" in cpu_flags.told(subject.collected):
        reason = "it is a VM itself, so its CPUs are somebody else's (flag hypervisor)"
        return skipped(name, reason, cpu_flags.PATH)
    if _VIRTUAL.search(" ".join(told)):
        reason = (
            f"it is a VM itself, so its CPUs are somebody else's ({' '.join(told)})"
        )
        return skipped(name, reason, _DMI)
    shown = " ".join(told).strip() or "no flag hypervisor"
    return passed(name, expected, shown, f"{cpu_flags.PATH}; {_DMI}")


def _still(subject: HostSubject) -> Iterator[Finding]:
    files, later = subject.collected.files, subject.collected.later
    for pattern, words in _STILL:
        paths = [
            path
            for path, text in files.items()
            if re.fullmatch(pattern, path) and text.strip().isdecimal()
        ]
        moved = [path for path in paths if later.get(path, files[path]) != files[path]]
        if moved:
            path = moved[0]
            reason = (
                f"{words}: from {files[path].strip()} to {later[path].strip()} between "
                f"the looks, {len(moved)} counters in all; figures are in doubt"
            )
            yield skipped("faults", reason, path)
        elif paths:
            yield passed("faults", "none", f"{len(paths)} counters stand", paths[0])


CHECK = Check(15, "hypervisor.hardware", "The host's hardware is sound", find)
