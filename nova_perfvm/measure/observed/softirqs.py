# SPDX-License-Identifier: Apache-2.0
"""``/proc/softirqs``: counts of softirqs by kind and CPU."""

from __future__ import annotations

from typing import Final

from nova_perfvm.measure.collect.collected import Collected
from nova_perfvm.measure.observed import interrupts

PATH: Final = "/proc/softirqs"
_MODULUS: Final = 2**32


def loudest(collected: Collected, cpu: int) -> str:
    """Return a CPU's most frequent softirq between the looks; empty if unknown."""
    first, later = (
        {
            kind: counts.get(cpu, 0)
            for kind, counts, _ in interrupts.rows(files.get(PATH, ""))
        }
        for files in (collected.files, collected.later)
    )
    did = {kind: (n - first.get(kind, n)) % _MODULUS for kind, n in later.items()}
    most = max(did, key=lambda kind: did[kind], default="")
    return most if did.get(most) else ""
