# SPDX-License-Identifier: Apache-2.0
"""Read the use of a server from sysstat: ``sadf -j FILE -- -u -r -b -n DEV``.

The keys are those that sysstat 12 writes (json_stats.c).
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.sizing.observed import VIRTUAL_NICS, ServerUse, kib_in_gib, quantile
from nova_perfvm.sizing.services import Peak

COMMAND: Final = "sadf -j FILE -- -u -r -b -n DEV"
_KIB_BITS: Final = 1024 * 8
_MARK: Final = '"sysstat"'


def is_sadf(text: str) -> bool:
    """Return whether a text looks like the output of ``sadf -j``."""
    return text.lstrip().startswith("{") and _MARK in text[:200]


def parse(text: str, source: str, peak: Peak) -> list[ServerUse]:
    """Return what each server of a file used.

    :param source: the file's name in errors
    :raises PerfVMError: when the text has no statistics of CPUs and memory
    """
    try:
        hosts = json.loads(text)["sysstat"]["hosts"]
        return [_server(host, peak) for host in hosts]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as exc:
        raise PerfVMError(
            f"{source}: not what {COMMAND} prints ({type(exc).__name__}: {exc}): "
            "expected statistics of CPUs and memory"
        ) from exc


def _server(host: Mapping[str, Any], peak: Peak) -> ServerUse:
    samples: Sequence[Mapping[str, Any]] = host["statistics"]
    cpus = int(host["number-of-cpus"])
    memory = [sample["memory"] for sample in samples if "memory" in sample]
    # Percentages have two digits: the largest is the nearest, and 0.00 may be another.
    fullest = max(memory, key=operator.itemgetter("memused-percent"))
    total_kib = fullest["memused"] / fullest["memused-percent"] * 100
    # The kernel can free the page cache.
    used_kib = quantile([max(0, total_kib - one["avail"]) for one in memory], peak)
    return ServerUse(
        name=host["nodename"],
        cpus=cpus,
        used_cpus=quantile(list(_busy(samples)), peak) * cpus / 100,
        memory_gb=kib_in_gib(total_kib),
        used_memory_gb=kib_in_gib(used_kib),
        network_gbps=_peak_of(_gbps(samples), peak),
        read_iops=_peak_of(_iops(samples, "io-reads", "rtps"), peak),
        write_iops=_peak_of(_iops(samples, "io-writes", "wtps"), peak),
    )


def _busy(samples: Sequence[Mapping[str, Any]]) -> Iterator[float]:
    """Yield the part of all CPUs that was busy, in percent; stolen time counts."""
    for sample in samples:
        loads = sample.get("cpu-load") or sample.get("cpu-load-all") or ()
        for load in loads:
            if load["cpu"] == "all":
                yield 100 - load["idle"] - load["iowait"]


def _gbps(samples: Sequence[Mapping[str, Any]]) -> Iterator[float]:
    for sample in samples:
        devices = sample.get("network", {}).get("net-dev")
        if devices is not None:
            real = [d for d in devices if not re.fullmatch(VIRTUAL_NICS, d["iface"])]
            ways = [sum(d[key] for d in real) for key in ("rxkB", "txkB")]
            yield max(ways) * _KIB_BITS / 1e9


def _iops(samples: Sequence[Mapping[str, Any]], way: str, key: str) -> Iterator[float]:
    return (sample["io"][way][key] for sample in samples if "io" in sample)


def _peak_of(values: Iterator[float], peak: Peak) -> float | None:
    known = list(values)
    return quantile(known, peak) if known else None
