# SPDX-License-Identifier: Apache-2.0
"""``/proc/stat``: where the CPUs' time went."""

from __future__ import annotations

from typing import Final, NamedTuple

from jc.parsers import proc_stat

from nova_perfvm.measure.collect.collected import Collected, NotReadError

PATH: Final = "/proc/stat"
# Time of guests of this machine is within user and nice.
_WITHIN: Final = ("guest", "guest_nice")


class CPUTime(NamedTuple):
    """Time of a CPU between two looks, in ticks of the clock.

    :ivar stolen_ever: since the machine started
    """

    total: int
    stolen: int
    stolen_ever: int

    @property
    def share(self) -> float:
        """The share that was stolen."""
        return self.stolen / self.total if self.total else 0.0


def read(collected: Collected) -> dict[int, CPUTime]:
    """Return the time of each CPU between the looks.

    :raises NotReadError: when it was not read twice, or does not say what was stolen
    """
    first, later = map(_cpus, collected.looks(PATH))
    return {
        cpu: CPUTime(
            total=sum(now[name] - first[cpu].get(name, 0) for name in now),
            stolen=now["steal"] - first[cpu]["steal"],
            stolen_ever=now["steal"],
        )
        for cpu, now in later.items()
        if cpu in first
    }


def _cpus(text: str) -> dict[int, dict[str, int]]:
    try:
        seen = proc_stat.parse(text, quiet=True)
    except (ValueError, IndexError) as exc:
        raise NotReadError(PATH, f"it cannot be understood: {exc}") from exc
    found: dict[int, dict[str, int]] = {}
    for key, fields in seen.items():
        number = key.removeprefix("cpu")
        if not number.isdigit() or not isinstance(fields, dict):
            continue
        if "steal" not in fields:
            raise NotReadError(PATH, "this kernel does not tell what is stolen")
        times = {name: ticks for name, ticks in fields.items() if name not in _WITHIN}
        found[int(number)] = times
    return found
