# SPDX-License-Identifier: Apache-2.0
"""``/proc/softirqs``: what the kernel does behind interrupts, by kind and CPU.

jc has no parser for it.
"""

from __future__ import annotations

from typing import Final

from nova_perfvm.measure.collect.collected import Collected

PATH: Final = "/proc/softirqs"
_MODULUS: Final = 2**32


def loudest(collected: Collected, cpu: int) -> str:
    """Return the kind that a CPU had most of between the looks; empty if not known."""
    first = _of(collected.files.get(PATH, ""), cpu)
    later = _of(collected.later.get(PATH, ""), cpu)
    did = {kind: (n - first.get(kind, n)) % _MODULUS for kind, n in later.items()}
    most = max(did, key=lambda kind: did[kind], default="")
    return most if did.get(most) else ""


def _of(text: str, cpu: int) -> dict[str, int]:
    """Return the counters of a CPU; the first line names the CPUs that are online."""
    header, *lines = text.splitlines() or [""]
    column = header.split().index(f"CPU{cpu}") if f"CPU{cpu}" in header.split() else -1
    found = {}
    for kind, _, counts in (line.partition(":") for line in lines):
        fields = counts.split()
        if 0 <= column < len(fields) and fields[column].isdecimal():
            found[kind.strip()] = int(fields[column])
    return found
