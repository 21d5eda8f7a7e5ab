# SPDX-License-Identifier: Apache-2.0
"""Figures that somebody measured without ``bench run``, from what the tools printed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from nova_perfvm.measure.bench.tools import fio, iperf3, sysbench, tool
from nova_perfvm.measure.samples import Samples

# {what each calls itself: (its name, what reads its output)}
_TOOLS: Final = {
    "sysbench": (sysbench.NAME, sysbench.parse),
    "fio": (fio.NAME, lambda text: fio.parse(fio.job_of(text)["jobname"], text)),
    "iperf": (iperf3.NAME, iperf3.parse),
}
_PROGRAM: Final = re.compile(rf"\b({'|'.join(_TOOLS)})[ -](\d+(?:\.\d+)+)")


def read(outputs: Iterable[tuple[str, str]], **common: Any) -> Samples:
    """Return what outputs say; of the same figures each further one is another round.

    :param outputs: the name of each in errors, and its text
    :param common: who measured, and what else is the same for all measurements
    :raises OutputError: for what none of the tools printed
    """
    rounds: Counter[str] = Counter()
    found = []
    for source, text in outputs:
        if not (program := _PROGRAM.search(text)):
            expected = "what sysbench prints, or JSON of fio or iperf3"
            raise tool.OutputError(f"{source}: expected {expected}")
        name, parse = _TOOLS[program[1]]
        try:
            figures = parse(text)
            rounds[min(figures)] += 1
            how = {"tool": name, "tool_version": program[2]} | common
            number = rounds[min(figures)]
            found += tool.measurements(figures, round=number, **how)
        except tool.OutputError as exc:
            raise tool.OutputError(f"{source}: {exc}") from None
    return Samples(tuple(found))
