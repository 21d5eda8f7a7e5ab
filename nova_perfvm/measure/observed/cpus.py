# SPDX-License-Identifier: Apache-2.0
"""The CPUs and NUMA nodes of a machine, as its kernel shows them."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from nova_perfvm import cpuset
from nova_perfvm.exceptions import CPUSetError
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed import interrupts

CPU: Final = "/sys/devices/system/cpu"
NODE: Final = "/sys/devices/system/node"


def numbers(collected: Collected, path: str) -> frozenset[int]:
    """Return the CPUs or nodes that a file lists.

    :raises NotReadError: when the file was not read, or is no list of numbers
    """
    return parsed(path, collected.text(path))


def parsed(path: str, text: str) -> frozenset[int]:
    """Parse a list of CPUs or nodes, such as ``0-3,8``, read from `path`.

    :raises NotReadError: when `text` is no list of numbers
    """
    try:
        return cpuset.parse(text.strip())
    except CPUSetError as exc:
        raise NotReadError(path, str(exc)) from exc


def some_numbers(collected: Collected, path: str) -> frozenset[int]:
    """Return the CPUs or nodes that a file lists, at least one.

    :raises NotReadError: when the file was not read, is empty or no list of numbers
    """
    found = numbers(collected, path)
    if not found:
        raise NotReadError(path, "it is empty")
    return found


def online(collected: Collected) -> frozenset[int]:
    """Return the online CPUs.

    :raises NotReadError: when neither sysfs nor the columns of /proc/interrupts
        were read
    """
    try:
        return some_numbers(collected, f"{CPU}/online")
    except NotReadError:
        if interrupts.PATH not in collected.files:
            raise
    return frozenset(interrupts.parse(collected.text(interrupts.PATH)).cpus)


def of_interrupt(collected: Collected, irq: int) -> frozenset[int]:
    """Return the CPUs that may handle an interrupt; empty when unread.

    Kernels before 4.15 list the allowed CPUs, later ones the chosen CPU.
    """
    for name in ("effective_affinity_list", "smp_affinity_list"):
        with suppress(NotReadError):
            return some_numbers(collected, f"/proc/irq/{irq}/{name}")
    return frozenset()


def threads_per_core(collected: Collected) -> int:
    """Return the largest number of online CPUs on a core.

    :raises NotReadError: when no thread_siblings_list was read
    """
    pattern = f"{CPU}/cpu*/topology/thread_siblings_list"
    paths = collected.matching(pattern)
    if not paths:
        raise NotReadError(pattern, "it was not collected")
    return max(len(some_numbers(collected, path)) for path in paths)


def mask(collected: Collected, path: str) -> frozenset[int]:
    """Return the CPUs of a mask such as ``f,00000001``: 32 bits a word.

    :raises NotReadError: when the file was not read, or holds no mask
    """
    text = collected.text(path).strip()
    if re.fullmatch(r"[0-9a-f]+(,[0-9a-f]{8})*", text) is None:
        raise NotReadError(path, f"no mask of CPUs: {text[:20]!r}")
    bits = int(text.replace(",", ""), 16)
    return frozenset(n for n in range(bits.bit_length()) if bits >> n & 1)
