# SPDX-License-Identifier: Apache-2.0
"""``/proc/interrupts``: the count of each vector on each CPU.

Offline CPUs leave holes in the columns, ARM has a line ``Err:``, and names follow the
trigger in old (``PCI-MSI-edge``) or new notation (``PCI-MSIX-0000:00:01.0 0-edge``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from nova_perfvm.measure.collect.collected import Collected, NotReadError

PATH: Final = "/proc/interrupts"

# The kernel counts each vector on each CPU in an unsigned int.
_MODULUS: Final = 2**32
# A larger difference between two looks means a counter that restarted from 0, as
# after reloading a driver.
_MOST: Final = 2**31

_CPU = re.compile(r"CPU(\d+)")
# Controller, interrupt number and trigger, in one word or several, precede the names
# of the handlers.
_TRIGGER = re.compile(r".*?(?:^|[-\s])(?:edge|level|fasteoi)\s+(.*)", re.IGNORECASE)


class Vector(NamedTuple):
    """One interrupt.

    :ivar irq: number of the interrupt
    :ivar names: names of the handlers, several for a shared interrupt
    :ivar counts: {CPU: number of interrupts}
    """

    irq: int
    names: tuple[str, ...]
    counts: Mapping[int, int]

    @property
    def total(self) -> int:
        """The count over all CPUs."""
        return sum(self.counts.values())


class Interrupts(NamedTuple):
    """The numbered interrupts of a machine.

    :ivar cpus: the online CPUs, one for each column
    :ivar since_boot: whether counts run from boot, not from the first look
    """

    cpus: tuple[int, ...]
    vectors: tuple[Vector, ...]
    since_boot: bool = True

    @property
    def source(self) -> str:
        """Where the counts were read."""
        return f"{PATH}, counted since boot" if self.since_boot else PATH

    def named(self, pattern: str) -> dict[int, Vector]:
        """Return {number: vector} of names that match a pattern, sorted.

        :param pattern: regular expression of a whole name; its first group is the
            number, 0 without a group
        """
        found: dict[int, Vector] = {}
        for vector in self.vectors:
            for name in vector.names:
                if match := re.fullmatch(pattern, name):
                    number = match.groups()[0] if match.groups() else None
                    found[int(number or 0)] = vector
        return dict(sorted(found.items()))


def parse(text: str) -> Interrupts:
    """Parse the text of ``/proc/interrupts``.

    :raises NotReadError: when the first line names no CPU
    """
    cpus = _cpus(text)
    if not cpus:
        raise NotReadError(PATH, "its first line names no CPU")
    vectors = [
        Vector(int(label), _names(described), counts)
        for label, counts, described in rows(text)
        # NMI, LOC, ERR and other labels count no device's interrupts.
        if label.isdecimal()
    ]
    return Interrupts(cpus, tuple(vectors))


def rows(text: str) -> Iterator[tuple[str, dict[int, int], str]]:
    """Yield (label, {CPU: count}, rest) of each row with a count for every CPU.

    :param text: text of ``/proc/interrupts`` or ``/proc/softirqs``
    """
    cpus = _cpus(text)
    for line in text.splitlines()[1:]:
        label, _, rest = line.partition(":")
        fields = rest.split(maxsplit=len(cpus))
        counts, described = fields[: len(cpus)], "".join(fields[len(cpus) :])
        if len(counts) == len(cpus) and all(map(str.isdecimal, counts)):
            numbers = dict(zip(cpus, map(int, counts), strict=True))
            yield label.strip(), numbers, described


def _cpus(text: str) -> tuple[int, ...]:
    return tuple(map(int, _CPU.findall(text.partition("\n")[0])))


def _names(described: str) -> tuple[str, ...]:
    """Return the handlers named in the rest of a row behind the counts."""
    match = _TRIGGER.fullmatch(described)
    handlers = match[1] if match else described.rpartition("  ")[2]
    return tuple(name.strip() for name in handlers.split(","))


def difference(first: Interrupts, later: Interrupts) -> Interrupts:
    """Return the interrupts of each vector between two looks.

    Only vectors and CPUs present at both looks count.

    :raises NotReadError: when a counter restarted between the looks
    """
    before = {(vector.irq, vector.names): vector for vector in first.vectors}
    cpus = tuple(cpu for cpu in later.cpus if cpu in first.cpus)
    vectors = []
    for vector in later.vectors:
        was = before.get((vector.irq, vector.names))
        if was is None:
            continue
        fired = {c: (vector.counts[c] - was.counts[c]) % _MODULUS for c in cpus}
        if any(count > _MOST for count in fired.values()):
            name = ", ".join(vector.names)
            reason = f"the counter of {name} began anew between the two looks"
            raise NotReadError(PATH, reason)
        vectors.append(Vector(vector.irq, vector.names, fired))
    return Interrupts(cpus, tuple(vectors), since_boot=False)


def read(collected: Collected) -> Interrupts:
    """Return the interrupts between the two looks; since boot after a single look.

    :raises NotReadError: when /proc/interrupts was not read, or a counter restarted
    """
    first = parse(collected.text(PATH))
    later = collected.later.get(PATH)
    return first if later is None else difference(first, parse(later))


def by_cpu(vectors: Iterable[Vector]) -> Counter[int]:
    """Return {CPU: interrupts of all vectors}, with zeros."""
    fired: Counter[int] = Counter()
    for vector in vectors:
        fired.update(vector.counts)
    return fired


def effective(counts: Iterable[float]) -> float:
    """Return the effective number of CPUs: 1 / sum of squared shares of `counts`.

    Equal shares give the number of CPUs, a single busy CPU gives 1, no counts give 0.
    """
    known = list(counts)
    squares = sum(count * count for count in known)
    return sum(known) ** 2 / squares if squares else 0.0
