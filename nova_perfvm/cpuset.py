# SPDX-License-Identifier: Apache-2.0
"""Lists of CPUs as Nova, libvirt and the kernel write them: ``0-19,^3,40``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from nova_perfvm.exceptions import CPUSetError

# As Python's int() reads numbers, and thereby Nova.
_INT = r"[+-]?\d+(?:_\d+)*"
_PART = re.compile(rf"(\^?)\s*({_INT.replace('-', '')})\s*(?:-\s*({_INT}))?")
_EXPECTED = "a CPU number, a range such as 0-19, or ^ before either to leave it out"

# A typo such as 0-19999999999 must not eat the machine's memory; Linux itself
# supports 8192 CPUs (CONFIG_NR_CPUS on x86).
MAX_CPU = 65535


def parse(text: str) -> frozenset[int]:
    """Return the CPUs of a list such as ``0-19,^3``; an empty set for an empty text.

    The position of an exclusion does not matter, as in Nova's own parser
    (nova.virt.hardware.parse_cpu_spec).

    :raises CPUSetError: a part is no number, range or exclusion, a range runs
        backwards, or a number exceeds :data:`MAX_CPU`
    """
    included: set[int] = set()
    excluded: set[int] = set()
    for raw in text.split(","):
        part = raw.strip()
        if not part:
            continue
        match = _PART.fullmatch(part)
        if match is None:
            raise CPUSetError(text, part, _EXPECTED)
        caret, first_text, last_text = match.groups()
        first = _number(first_text)
        last = _number(last_text) if last_text else first
        if last < first:
            raise CPUSetError(text, part, "the lower CPU number first")
        if last > MAX_CPU:
            raise CPUSetError(text, part, f"CPU numbers up to {MAX_CPU}")
        (excluded if caret else included).update(range(first, last + 1))
    return frozenset(included - excluded)


def _number(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        # int() refuses more than 4300 digits.
        return MAX_CPU + 1


def format_cpus(cpus: Iterable[int]) -> str:
    """Return the shortest list for a set of CPUs: ``{0, 1, 2, 5}`` -> ``0-2,5``."""
    ordered = sorted(set(cpus))
    if not ordered:
        return ""
    breaks = [i + 1 for i, (a, b) in enumerate(pairwise(ordered)) if b != a + 1]
    ranges = []
    for start, end in pairwise([0, *breaks, len(ordered)]):
        first, last = ordered[start], ordered[end - 1]
        ranges.append(str(first) if first == last else f"{first}-{last}")
    return ",".join(ranges)
