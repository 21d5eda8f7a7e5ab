# SPDX-License-Identifier: Apache-2.0
"""The table of services: the peaks of today's servers.

A file is CSV with a header of the keys of :class:`Service`, or YAML::

    kind: services
    schema_version: "1.0"
    services:
      redis: {servers: 12, cpus: 40, cpu_percent: 46, memory_gb: 96, peak: p95}
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal

from nova_perfvm.documents.document import parse_document
from nova_perfvm.documents.keys import (
    NAME,
    Expected,
    Form,
    count,
    keys_of,
    read_value,
    some,
)
from nova_perfvm.documents.mistakes import DocumentError, Mistake

Peak = Literal["max", "p99", "p95"]
Name = Annotated[str, some("the name of a service")]
Servers = Annotated[int, count(1, 1_000_000, "servers")]
CPUs = Annotated[int, count(1, 4096, "CPUs")]
Amount = Annotated[float, Expected("a number above 0", lambda n: n > 0)]
Memory = Annotated[
    float, Expected("a number of GiB above 0, without a unit", lambda n: n > 0)
]
Percent = Annotated[
    float, Expected("a percentage above 0, at most 100", lambda n: 0 < n <= 100)
]

# A header of CSV; YAML and JSON have other characters in their first line.
_HEADER: Final = re.compile(r"[^:{}\[\],;\t]+([,;\t][^:{}\[\],;\t]*)+")
_COMMENTS: Final = re.compile(r"\A([ \t]*(#.*)?\n)+")
_DELIMITERS: Final = ",;\t"
_BOOLEANS: Final = {"yes": True, "true": True, "no": False, "false": False}
# int() fails for texts of thousands of digits.
_NUMBER: Final = re.compile(r"\d{1,20}(\.\d+)?")
_TEXTS: Final = frozenset({"name", "peak", "class"})


@dataclass(frozen=True, kw_only=True)
class Service:
    """One service, and the peaks of its servers.

    An empty figure is not judged, except that a server without ``cpu_percent`` or
    ``used_memory_gb`` is taken to use all of its CPUs or memory.

    :ivar servers: number of today's servers
    :ivar cpus: CPUs of each server
    :ivar memory_gb: memory of each server in GiB
    :ivar network_gbps: the larger of received and sent, in Gbit/s
    :ivar latency_ms: longest mean latency of its disk I/O that the service tolerates
    :ivar peak: what the figures are of each server's values: the largest, or a
        percentile; None if nobody said
    :ivar latency_sensitive: whether late wake-ups hurt the service
    :ivar divisible: whether several VMs may do the work of one server
    :ivar shares_host: whether two VMs of the service may be on one host
    :ivar class_name: the class that its VMs must have; None for any class
    :ivar watts: power that each server draws; ``cost`` is its cost in any currency
    """

    name: Name = field(metadata=NAME)
    servers: Servers
    cpus: CPUs
    cpu_percent: Percent | None = None
    memory_gb: Memory | None = None
    used_memory_gb: Memory | None = None
    network_gbps: Amount | None = None
    read_iops: Amount | None = None
    write_iops: Amount | None = None
    latency_ms: Amount | None = None
    peak: Peak | None = None
    latency_sensitive: bool = False
    divisible: bool = True
    shares_host: bool = True
    class_name: str | None = field(default=None, metadata={"key": "class"})
    watts: Amount | None = None
    cost: Amount | None = None

    @property
    def used_cpus(self) -> float:
        """CPUs of one server that the service uses at its peak."""
        return self.cpus * (100 if self.cpu_percent is None else self.cpu_percent) / 100

    @property
    def needed_memory_gb(self) -> float:
        """GiB that the service uses on one server, else the server's; 0 if unknown."""
        return self.used_memory_gb or self.memory_gb or 0

    def mistakes(self) -> Iterator[Mistake]:
        """Yield a missing memory size, or a used one above the server's."""
        if not self.needed_memory_gb:
            message = "missing; expected the server's GiB, or used_memory_gb"
            yield Mistake(("memory_gb",), message)
        elif self.memory_gb and self.needed_memory_gb > self.memory_gb:
            message = f"{self.needed_memory_gb:g}, more than the server's memory_gb"
            yield Mistake(("used_memory_gb",), message)


_COLUMNS: Final = "CSV with a header of these columns: " + ", ".join(
    key.name for key in keys_of(Service)
)


@dataclass(frozen=True)
class Services:
    """The table of services."""

    services: Annotated[
        tuple[Service, ...], Form.BY_NAME, some("one service or more, by name")
    ]


def parse(text: str, source: str) -> tuple[Service, ...]:
    """Return the services of a CSV or YAML text.

    :param source: the file's name in errors
    :raises DocumentError: with all mistakes
    """
    if not text.strip():
        message = f"the file is empty; expected {_COLUMNS}"
        raise DocumentError(source, [Mistake((), message)], "services")
    text = text.removeprefix("\ufeff")
    table = _COMMENTS.sub("", text, count=1)
    header = text.count("\n") - table.count("\n") + 1
    if not _HEADER.fullmatch(table.partition("\n")[0].strip()):
        return parse_document("services", Services, text, source).services
    try:
        rows, lines, mistakes = _rows(table, header)
    except csv.Error as exc:
        # A quote that is not closed takes the rest of the file as one cell.
        message = f"{exc}: is a quote not closed?"
        raise DocumentError(source, [Mistake((), message)], "services") from exc
    if rows:
        found, more = read_value(Services, {"services": rows})
        mistakes += _at_lines(more, lines, header)
        if not mistakes:
            return tuple(found.services)
    raise DocumentError(source, dict.fromkeys(mistakes), "services")


def _rows(
    text: str, first: int
) -> tuple[dict[str, Any], dict[str, int], list[Mistake]]:
    """Return {service: row}, {service: line} and the mistakes of a CSV text.

    :param first: the header's line
    """
    header = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=header.count)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    rows: dict[str, Any] = {}
    lines: dict[str, int] = {}
    names = [name.strip() for name in next(reader, [])]
    if "name" not in names:
        return rows, lines, [Mistake((), f"expected {_COLUMNS}")]
    mistakes = [
        Mistake((name,), "named twice: leave one out", first)
        for name in dict.fromkeys(names)
        if name and names.count(name) > 1
    ]
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        here = first - 1 + reader.line_num
        # A row that lacks a cell would have the values of other columns.
        if len(cells) != len(names):
            message = f"{len(cells)} cells, but the header has {len(names)}"
            mistakes.append(Mistake(("row",), message, here))
            continue
        row = {
            key: _value(key, cell.strip())
            for key, cell in zip(names, cells, strict=True)
            if cell.strip()
        }
        name = row.pop("name", "")
        if name in rows:
            message = f"is on line {lines[name]} already: give each its own name"
            mistakes.append(Mistake((name,), message, here))
            continue
        rows[name], lines[name] = row, here
    if not rows and not mistakes:
        mistakes = [Mistake((), "expected a row for each service below the header")]
    return rows, lines, mistakes


def _value(key: str, cell: str) -> Any:
    if key in _TEXTS:
        return cell
    if _NUMBER.fullmatch(cell):
        return float(cell) if "." in cell else int(cell)
    return _BOOLEANS.get(cell.lower(), cell)


def _at_lines(
    mistakes: list[Mistake], lines: dict[str, int], header: int
) -> list[Mistake]:
    """Return mistakes with their rows' lines, unknown columns with the header's."""
    found = []
    for mistake in mistakes:
        _, name, *keys = (*mistake.path, "", "")
        if mistake.message.startswith("unknown key"):
            path = tuple(key for key in keys if key)
            found.append(Mistake(path, mistake.message, line=header))
        else:
            path = mistake.path[1:]
            found.append(replace(mistake, path=path, line=lines.get(name)))
    return found
