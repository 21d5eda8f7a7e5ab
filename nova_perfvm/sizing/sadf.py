# SPDX-License-Identifier: Apache-2.0
"""Read the use of a server from sysstat: ``sadf -j FILE -- -u -r -b -n DEV``.

The keys are those that sysstat 12 writes (json_stats.c).
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.sizing.observed import VIRTUAL_NICS, ServerUse, kib_in_gib, quantile
from nova_perfvm.sizing.services import Peak

COMMAND: Final = "sadf -j FILE -- -u -r -b -n DEV"
_KIB_BITS: Final = 1024 * 8
_MARK: Final = '"sysstat"'


def is_sadf(text: str) -> bool:
    """Return whether a text looks like the output of ``sadf -j``."""
    return text.lstrip().startswith("{") and _MARK in text[:200]


class SadfSample(NamedTuple):
    """A server's use of resources in an interval of sysstat; None if not recorded.

    :ivar when: date and time of the interval
    :ivar busy: number of busy CPUs
    """

    when: str
    busy: float | None
    used_memory_kib: float | None
    network_gbps: float | None
    read_iops: float | None
    write_iops: float | None


class SadfOutput(NamedTuple):
    """One server in one file: sysstat begins a file each day."""

    server: str
    cpus: int
    memory_kib: float
    moments: tuple[SadfSample, ...]


def parse(text: str, source: str) -> list[SadfOutput]:
    """Return an output for each server in the JSON of ``sadf -j``.

    :param source: the file's name in errors
    :raises PerfVMError: when the text is no such JSON, or lacks CPUs or memory
    """
    try:
        hosts = json.loads(text)["sysstat"]["hosts"]
        return [_output(host) for host in hosts]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as exc:
        raise PerfVMError(
            f"{source}: not what {COMMAND} prints ({type(exc).__name__}: {exc}): "
            "expected statistics of CPUs and memory"
        ) from exc


def servers(outputs: Iterable[SadfOutput], peak: Peak) -> list[ServerUse]:
    """Return the peak use of each server over all outputs of the server.

    :raises PerfVMError: when two outputs of a name are not of one server
    """
    found: dict[str, list[SadfOutput]] = {}
    for output in outputs:
        found.setdefault(output.server, []).append(output)
    return [_server(name, same, peak) for name, same in found.items()]


def _server(name: str, outputs: Sequence[SadfOutput], peak: Peak) -> ServerUse:
    moments = _each_once(name, outputs)

    def peak_of(key: str) -> float | None:
        known = [n for one in moments if (n := getattr(one, key)) is not None]
        return quantile(known, peak) if known else None

    return ServerUse(
        name=name,
        # CPUs or memory may have been added between two days.
        cpus=max(output.cpus for output in outputs),
        used_cpus=peak_of("busy") or 0.0,
        memory_gb=kib_in_gib(max(output.memory_kib for output in outputs)),
        used_memory_gb=kib_in_gib(peak_of("used_memory_kib") or 0.0),
        network_gbps=peak_of("network_gbps"),
        read_iops=peak_of("read_iops"),
        write_iops=peak_of("write_iops"),
    )


def _each_once(name: str, outputs: Iterable[SadfOutput]) -> list[SadfSample]:
    """Return the samples of all outputs, a sample of overlapping outputs once.

    :raises PerfVMError: when two outputs have different loads at the same time
    """
    found: list[SadfSample] = []
    known: dict[str, SadfSample] = {}
    for output in outputs:
        new = [one for one in output.moments if one.when not in known]
        for one in output.moments:
            if one.when in known and one.busy != known[one.when].busy:
                raise PerfVMError(
                    f"server {name} has two loads at {one.when}: are these two servers "
                    "of one name? Give each its own nodename"
                )
        found += new
        # After the whole output: local time has an hour twice when summer time ends.
        known |= {one.when: one for one in new}
    return found


def _output(host: Mapping[str, Any]) -> SadfOutput:
    samples: Sequence[Mapping[str, Any]] = host["statistics"]
    cpus = int(host["number-of-cpus"])
    memory = [sample["memory"] for sample in samples if "memory" in sample]
    # Percentages have two digits: the largest is the nearest, and 0.00 may be another.
    fullest = max(memory, key=operator.itemgetter("memused-percent"))
    total_kib = fullest["memused"] / fullest["memused-percent"] * 100
    moments = tuple(_moment(sample, cpus, total_kib) for sample in samples)
    if all(one.busy is None for one in moments):
        raise LookupError("cpu-load")
    return SadfOutput(host["nodename"], cpus, total_kib, moments)


def _moment(sample: Mapping[str, Any], cpus: int, total_kib: float) -> SadfSample:
    memory, io = sample.get("memory"), sample.get("io")
    busy, at = _busy(sample), sample["timestamp"]
    return SadfSample(
        when=f"{at['date']} {at['time']}",
        busy=None if busy is None else busy * cpus / 100,
        # The kernel can free the page cache.
        used_memory_kib=None if memory is None else max(0, total_kib - memory["avail"]),
        network_gbps=_gbps(sample),
        read_iops=None if io is None else float(io["io-reads"]["rtps"]),
        write_iops=None if io is None else float(io["io-writes"]["wtps"]),
    )


def _busy(sample: Mapping[str, Any]) -> float | None:
    """Return the part of all CPUs that was busy, in percent; stolen time counts."""
    for load in sample.get("cpu-load") or sample.get("cpu-load-all") or ():
        if load["cpu"] == "all":
            return float(100 - load["idle"] - load["iowait"])
    return None


def _gbps(sample: Mapping[str, Any]) -> float | None:
    devices = sample.get("network", {}).get("net-dev")
    if devices is None:
        return None
    real = [one for one in devices if not re.fullmatch(VIRTUAL_NICS, one["iface"])]
    ways = [sum(one[key] for one in real) for key in ("rxkB", "txkB")]
    return float(max(ways) * _KIB_BITS / 1e9)
