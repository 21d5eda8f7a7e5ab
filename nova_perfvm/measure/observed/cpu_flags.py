# SPDX-License-Identifier: Apache-2.0
"""What the CPUs of a machine can do: the flags of ``/proc/cpuinfo``."""

from __future__ import annotations

import re
from typing import Final

from nova_perfvm.measure.collect.collected import Collected, NotReadError

PATH: Final = "/proc/cpuinfo"
# What programs compute with, and without which memory, interrupts and timers are slow.
# All of them have names since Linux 4.16, so that a guest that lacks one was not
# given it; KVM can give each to guests, and libvirt's host-model does.
_NEEDED: Final = """
ssse3 sse4_1 sse4_2 popcnt movbe cx16 aes pclmulqdq sha_ni abm bmi1 bmi2 adx f16c fma
avx avx2 avx512f avx512dq avx512cd avx512bw avx512vl avx512ifma avx512vbmi avx512_vbmi2
avx512_vnni avx512_bitalg avx512_vpopcntdq gfni vaes vpclmulqdq erms clflushopt clwb
xsavec rdtscp pcid invpcid x2apic tsc_deadline_timer
"""
NEEDED: Final = frozenset(_NEEDED.split())
# Kernels, QEMU or libvirt of before 2022 know some of these not, whatever the model.
_NEWER: Final = """
pdpe1gb avx_vnni avx512_bf16 avx512_fp16 amx_tile amx_int8 amx_bf16 fsrm
"""
NEWER: Final = frozenset(_NEWER.split())
# Where libvirt's names are other than the kernel's.
_NAMES: Final = {"tsc_deadline": "tsc_deadline_timer", "lzcnt": "abm"}


def kernel_name(name: str) -> str:
    """Return what the kernel calls a feature of libvirt's, such as avx512vnni."""
    plain = re.sub(r"[-.]", "_", name)
    alike = {flag.replace("_", ""): flag for flag in NEEDED | NEWER}
    return _NAMES.get(plain, alike.get(plain.replace("_", ""), plain))


def told(collected: Collected) -> frozenset[str]:
    """Return the flags that all CPUs have; none where they are not told."""
    try:
        return read(collected)
    except NotReadError:
        return frozenset()


def is_arm(collected: Collected) -> bool:
    """Return whether it is a machine on which KVM knows no CPU but the host's."""
    return "CPU implementer" in collected.files.get(PATH, "")


def read(collected: Collected) -> frozenset[str]:
    """Return the flags that all CPUs have.

    :raises NotReadError: when they were not read
    """
    lines = re.findall(r"^flags\s*:(.*)$", collected.text(PATH), re.MULTILINE)
    if not lines:
        raise NotReadError(PATH, "it names no flags")
    return frozenset.intersection(*(frozenset(line.split()) for line in lines))
