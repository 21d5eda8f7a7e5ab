# SPDX-License-Identifier: Apache-2.0
"""``/proc/interrupts``: how often each vector fired, on which CPU.

The numbers of CPUs have holes where some are offline, ARM has a line ``Err:``, and
before names stand forms of old (``PCI-MSI-edge``) and new kernels
(``PCI-MSIX-0000:00:01.0 0-edge``).
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
# More than that between two looks is no difference but a counter that began anew,
# as those of a driver that was loaded again do.
_MOST: Final = 2**31

_CPU = re.compile(r"CPU(\d+)")
# What stands before the names of the handlers: the kind of controller, the number
# of the interrupt there, and how it is triggered, in one word or several.
_TRIGGER = re.compile(r".*?(?:^|[-\s])(?:edge|level|fasteoi)\s+(.*)", re.IGNORECASE)


class Vector(NamedTuple):
    """One interrupt.

    :ivar irq: its number
    :ivar names: of those that handle it; several share one
    :ivar counts: {CPU: how often it fired}
    """

    irq: int
    names: tuple[str, ...]
    counts: Mapping[int, int]

    @property
    def total(self) -> int:
        """How often it fired on all CPUs."""
        return sum(self.counts.values())


class Interrupts(NamedTuple):
    """The numbered interrupts of a machine.

    :ivar cpus: the CPUs that were online, as there is a column for each
    :ivar since_boot: whether they are counted since the machine started, not
        between two looks
    """

    cpus: tuple[int, ...]
    vectors: tuple[Vector, ...]
    since_boot: bool = True

    @property
    def source(self) -> str:
        """Where the counts were read."""
        return f"{PATH}, counted since boot" if self.since_boot else PATH

    def named(self, pattern: str) -> dict[int, Vector]:
        """Return the vectors of a name, by the number in the pattern's first group.

        :param pattern: regular expression of a whole name; 0 is the number if the
            name has none
        """
        found: dict[int, Vector] = {}
        for vector in self.vectors:
            for name in vector.names:
                if match := re.fullmatch(pattern, name):
                    number = match.groups()[0] if match.groups() else None
                    found[int(number or 0)] = vector
        return dict(sorted(found.items()))


def parse(text: str) -> Interrupts:
    """Read the text of ``/proc/interrupts``.

    :raises NotReadError: when it has no columns of CPUs
    """
    cpus = _cpus(text)
    if not cpus:
        raise NotReadError(PATH, "its first line names no CPU")
    vectors = [
        Vector(int(label), _names(described), counts)
        for label, counts, described in rows(text)
        # Others, as NMI, LOC and ERR, are of the machine, not of a device.
        if label.isdigit()
    ]
    return Interrupts(cpus, tuple(vectors))


def rows(text: str) -> Iterator[tuple[str, dict[int, int], str]]:
    """Yield the label, {CPU: count} and the rest of each row that has all counts.

    :param text: of ``/proc/interrupts`` or ``/proc/softirqs``
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
    """Return the handlers of a vector, of what stands behind its counts."""
    match = _TRIGGER.fullmatch(described)
    handlers = match[1] if match else described.rpartition("  ")[2]
    return tuple(name.strip() for name in handlers.split(","))


def difference(first: Interrupts, later: Interrupts) -> Interrupts:
    """Return how often each vector fired between two looks.

    Only vectors and CPUs that were there at both looks count.

    :raises NotReadError: when a counter began anew in between
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
    """Return what fired between the two looks; since boot, if there was but one.

    :raises NotReadError: when it was not read, or a counter began anew
    """
    first = parse(collected.text(PATH))
    later = collected.later.get(PATH)
    return first if later is None else difference(first, parse(later))


def by_cpu(vectors: Iterable[Vector]) -> Counter[int]:
    """Return how often vectors fired on each CPU, the CPUs without any, too."""
    fired: Counter[int] = Counter()
    for vector in vectors:
        fired.update(vector.counts)
    return fired


def effective(counts: Iterable[float]) -> float:
    """Return over how many CPUs something is spread: 1 / sum of squared shares.

    It is the number of CPUs if all have the same share, and 1 if one has all; 0 if
    there is nothing.
    """
    known = list(counts)
    squares = sum(count * count for count in known)
    return sum(known) ** 2 / squares if squares else 0.0
