# SPDX-License-Identifier: Apache-2.0
"""Features of a machine's CPUs: the flags of ``/proc/cpuinfo``."""

from __future__ import annotations

import re
from typing import Final

from nova_perfvm.measure.collect.collected import Collected, NotReadError

PATH: Final = "/proc/cpuinfo"
# Flags for computing, and for fast memory, interrupts and timers.  Linux 4.16 names
# every flag here, so a flag missing in a newer guest was withheld from the guest.  KVM
# can pass each flag on, and libvirt's host-model does.
_NEEDED: Final = """
ssse3 sse4_1 sse4_2 popcnt movbe cx16 aes pclmulqdq sha_ni abm bmi1 bmi2 adx f16c fma
avx avx2 avx512f avx512dq avx512cd avx512bw avx512vl avx512ifma avx512vbmi avx512_vbmi2
avx512_vnni avx512_bitalg avx512_vpopcntdq gfni vaes vpclmulqdq erms clflushopt clwb
xsavec rdtscp pcid invpcid x2apic tsc_deadline_timer
"""
NEEDED: Final = frozenset(_NEEDED.split())
# Flags that kernels, QEMU or libvirt from before 2022 do not know.
_NEWER: Final = """
pdpe1gb avx_vnni avx512_bf16 avx512_fp16 amx_tile amx_int8 amx_bf16 fsrm
"""
NEWER: Final = frozenset(_NEWER.split())
# {libvirt's name of a feature: the kernel's name}, where the names differ.
_NAMES: Final = {"tsc_deadline": "tsc_deadline_timer", "lzcnt": "abm"}


def kernel_name(name: str) -> str:
    """Return the kernel's name of a libvirt CPU feature, such as avx512vnni."""
    plain = re.sub(r"[-.]", "_", name)
    alike = {flag.replace("_", ""): flag for flag in NEEDED | NEWER}
    return _NAMES.get(plain, alike.get(plain.replace("_", ""), plain))


def told(collected: Collected) -> frozenset[str]:
    """Return the flags common to all CPUs; empty when unread."""
    try:
        return read(collected)
    except NotReadError:
        return frozenset()


def is_arm(collected: Collected) -> bool:
    """Return whether the machine is ARM, where KVM supports only the host CPU."""
    return "CPU implementer" in collected.files.get(PATH, "")


def read(collected: Collected) -> frozenset[str]:
    """Return the flags common to all CPUs.

    :raises NotReadError: when /proc/cpuinfo was not read, or lists no flags
    """
    lines = re.findall(r"^flags\s*:(.*)$", collected.text(PATH), re.MULTILINE)
    if not lines:
        raise NotReadError(PATH, "it names no flags")
    return frozenset.intersection(*(frozenset(line.split()) for line in lines))
