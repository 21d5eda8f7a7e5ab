# SPDX-License-Identifier: Apache-2.0
"""The parts that all benchmark tools share."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from nova_perfvm.documents.keys import EACH_ONCE, count, some
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure.samples import Better, Measurement

# A day; a benchmark that takes longer is a typing error.
Seconds = Annotated[int, count(1, 24 * 3600, "seconds")]
_THREADS: Final = count(1, 1024, "threads")
Threads = Annotated[
    tuple[Annotated[int, _THREADS], ...],
    some("a list of numbers of threads from 1 to 1024, such as [1, 4]"),
    EACH_ONCE,
]
# vCPUs of the built-in policy's high-performance VMs: with fewer threads the host,
# vhost and interrupts have CPUs to themselves, which they lack when all are in use.
VCPUS: Final = 20

# {what a metric's name ends with: (unit, which values are better)}; the first holds.
_MEANINGS: Final[dict[str, tuple[str, Better]]] = {
    "_mib_per_second": ("MiB/s", "higher"),
    "bits_per_second": ("bit/s", "higher"),
    "bits_per_second_p5": ("bit/s", "higher"),
    "_per_second": ("1/s", "higher"),
    "_iops": ("1/s", "higher"),
    "_ms": ("ms", "lower"),
    "_us": ("us", "lower"),
    "_ns": ("ns", "lower"),
}
# What reading an output of another form ends with.
_ERRORS: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class OutputError(PerfVMError):
    """A tool's output in which its figures are not found."""


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """The server that a tool needs on another machine.

    :ivar target: name of the machine
    :ivar command: command line of the server
    :ivar ready: line that the server prints when it is ready
    :ivar times: number of such lines
    """

    target: str
    command: tuple[str, ...]
    ready: str
    times: int


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a tool on one target.

    :ivar name: name of the run in reports, such as ``sysbench cpu``
    :ivar threads: threads, jobs or connections
    :ivar seconds: planned duration
    :ivar command: the command line
    :ivar parse: returns {metric: value} of the command's standard output
    :ivar server: the server that the run needs
    :ivar loaded: whether a load keeps all CPUs of the target busy beside the run
    :ivar most_bytes: the longest output of the command
    """

    tool: str
    name: str
    threads: int
    seconds: int
    command: tuple[str, ...]
    parse: Callable[[str], dict[str, float]]
    server: ServerCommand | None = None
    loaded: bool = False
    most_bytes: int = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tool's command line will run.

    :ivar who: name of the target
    :ivar number: index of the target among the targets at once, from 0
    :ivar working_set_mb: memory that memory benchmarks use
    :ivar directory: the target's own directory on the disk to measure
    """

    who: str
    number: int = 0
    working_set_mb: int = 0
    directory: str | None = None


def words(line: str, *values: Any) -> tuple[str, ...]:
    """Return the words of a command line; {0.name} is of the first value."""
    return tuple(word.format(*values) for word in line.split())


def shell(script: str, *arguments: str) -> tuple[str, ...]:
    """Return the command line of a shell script; its arguments are $1, $2..."""
    return ("sh", "-c", script, "sh", *arguments)


def documents_of(program: str, text: str, option: str = "") -> list[Any]:
    """Return the JSON documents in a program's output, one after the other.

    Text between the documents, such as warnings, is ignored.

    :param option: option with which the program prints JSON, for the error
    :raises OutputError: when a document is incomplete, or there is none
    """
    decoder = json.JSONDecoder()
    found = []
    start = text.find("{")
    try:
        while start >= 0:
            document, end = decoder.raw_decode(text, start)
            found.append(document)
            start = text.find("{", end)
    except (ValueError, RecursionError) as exc:
        raise OutputError(f"{program} printed no JSON: {exc}") from None
    if not found:
        remedy = f": run it with {option}" if option else ""
        raise OutputError(f"{program} printed no JSON{remedy}")
    return found


@contextlib.contextmanager
def output_of(program: str) -> Iterator[None]:
    """Raise OutputError if the body finds something missing in a program's output."""
    try:
        yield
    except _ERRORS as exc:
        message = f"{program} printed something else than expected: {exc!r}"
        raise OutputError(message) from exc


def measurements(figures: Mapping[str, float], **common: Any) -> list[Measurement]:
    """Return measurements of {metric: value}.

    :param common: fields that all measurements share, without unit and better
    :raises OutputError: when a value is 0, to which there is no ratio
    """
    found = []
    for metric, value in figures.items():
        if not value > 0:
            raise OutputError(f"{metric} is {value:g}: nothing was done")
        unit, better = meaning(metric)
        found.append(
            Measurement(metric=metric, value=value, unit=unit, better=better, **common)
        )
    return found


def meaning(metric: str) -> tuple[str, Better]:
    """Return the unit of a metric, and which values of it are better."""
    return next(found for end, found in _MEANINGS.items() if metric.endswith(end))
