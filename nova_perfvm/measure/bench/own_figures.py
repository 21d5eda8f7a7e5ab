# SPDX-License-Identifier: Apache-2.0
"""Figures that somebody measured without ``bench run``, from what the tools printed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from nova_perfvm.measure.bench.tools import fio, iperf3, sysbench, tool
from nova_perfvm.measure.samples import Samples
from nova_perfvm.printable import number_of

# {first word of the output: (tool, parser of figures, reader of the conditions)}
_TOOLS: Final[dict[str, tuple[str, Any, Any]]] = {
    "sysbench": (sysbench.NAME, sysbench.parse, sysbench.conditions),
    "fio": (fio.NAME, partial(fio.parse, ""), fio.conditions),
    "iperf": (iperf3.NAME, iperf3.parse, iperf3.conditions),
}
_EXPECTED: Final = "expected what sysbench prints, or JSON of fio or iperf3"
_PROGRAM: Final = re.compile(rf"\b({'|'.join(_TOOLS)})[ -](\d+(?:\.\d+)+)")


def read(
    outputs: Iterable[tuple[str, str]], threads: int | None, **common: Any
) -> Samples:
    """Return the figures of outputs; each further output of the same kind is a round.

    :param outputs: (name of the output in errors, text of the output)
    :param threads: number of threads, for outputs that do not name it
    :param common: fields that all measurements share, such as ``who``
    :raises OutputError: with every output that is no known tool's, or that is no
        further round of the measurement before
    """
    # {(metric, threads): (source, text, conditions) of each round}
    rounds: dict[tuple[str, int], list[tuple[str, str, dict[str, Any]]]] = {}
    found, wrong = [], []
    for source, text in outputs:
        if not (program := _PROGRAM.search(text)):
            wrong.append(f"{source}: {_EXPECTED}")
            continue
        name, parse, conditions = _TOOLS[program[1]]
        try:
            figures, how = parse(text), conditions(text)
            number = _threads(how.pop("threads"), threads)
            before = rounds.setdefault((min(figures), number), [])
            for other, its_text, its in before:
                _check_round(other, how, its, same=text == its_text)
            before.append((source, text, how))
            of_run = {"tool": name, "tool_version": program[2], "threads": number}
            found += tool.measurements(figures, round=len(before), **of_run, **common)
        except tool.OutputError as exc:
            wrong.append(f"{source}: {exc}")
    if wrong:
        raise tool.OutputError("\n".join(wrong))
    return Samples(tuple(found))


def _threads(told: int | None, given: int | None) -> int:
    """Return the threads that the output tells, else those given; refuse others."""
    number = told or given
    if number is None:
        raise tool.OutputError("it does not say how many threads: give --threads")
    if given not in {None, number}:
        ran = number_of(number, "thread")
        raise tool.OutputError(f"it ran with {ran}, not {given}: omit --threads")
    return number


def _check_round(
    earlier: str, how: dict[str, Any], its: dict[str, Any], *, same: bool
) -> None:
    """Refuse a copy of an earlier output, or one made with other options.

    :param how: options of the output
    :param its: options of the earlier output
    :param same: whether both outputs are the same text
    """
    if same:
        raise tool.OutputError(f"the same as {earlier}: leave one out")
    for key in how | its:
        if (here := how.get(key)) != (there := its.get(key)):
            reason = f"no round of the same measurement as {earlier}: {key} {here}, not"
            raise tool.OutputError(f"{reason} {there}: import it into another file")
