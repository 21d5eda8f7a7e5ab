# SPDX-License-Identifier: Apache-2.0
"""Read the use of servers from node_exporter's metrics in Prometheus.

One instant query for each figure (``/api/v1/query``): a subquery takes the rate over
five minutes at every five minutes of the range, and then its quantile.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from typing import Any, Final

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.sizing.observed import (
    QUANTILES,
    VIRTUAL_DISKS,
    VIRTUAL_NICS,
    ServerUse,
    kib_in_gib,
)
from nova_perfvm.sizing.services import Peak

_TIMEOUT_S: Final = 60
_NIC: Final = f'device!~"{VIRTUAL_NICS}"'.replace("\\", "\\\\")
_DISK: Final = f'device!~"{VIRTUAL_DISKS}"'
_TOTAL: Final = "max by (instance) (node_memory_MemTotal_bytes) / 1024"
# Queries by field of ServerUse, with one value for each instance.
_NOW: Final = {
    "cpus": 'count by (instance) (node_cpu_seconds_total{mode="idle"})',
    "memory_kib": _TOTAL,
}
_OVER_TIME: Final = {
    # Stolen time counts: a VM that runs there now wanted it.
    "used_cpus": "sum by (instance) (rate("
    'node_cpu_seconds_total{mode!~"idle|iowait|guest|guest_nice"}[5m]))',
    "used_memory_kib": "max by (instance) (node_memory_MemTotal_bytes - "
    "node_memory_MemAvailable_bytes) / 1024",
    "received": f"sum by (instance) (rate(node_network_receive_bytes_total{{{_NIC}}}"
    "[5m])) * 8e-9",
    "sent": f"sum by (instance) (rate(node_network_transmit_bytes_total{{{_NIC}}}"
    "[5m])) * 8e-9",
    "read_iops": f"sum by (instance) (rate(node_disk_reads_completed_total{{{_DISK}}}"
    "[5m]))",
    "write_iops": f"sum by (instance) (rate(node_disk_writes_completed_total{{{_DISK}}}"
    "[5m]))",
}


def read(url: str, period: str, peak: Peak) -> list[ServerUse]:
    """Return the use of each instance of node_exporter.

    :param url: URL of Prometheus, such as ``http://prometheus:9090``
    :param period: range up to now in Prometheus' form, such as ``7d``
    :raises PerfVMError: when Prometheus does not answer, or lacks CPUs and memory
    """
    now = {
        key: _query(url, f"last_over_time(({q})[{period}:5m])")
        for key, q in _NOW.items()
    }
    used = {
        key: _query(url, f"quantile_over_time({QUANTILES[peak]}, ({q})[{period}:5m])")
        for key, q in _OVER_TIME.items()
    }
    whole = now["cpus"].keys() & now["memory_kib"].keys() & used["used_cpus"].keys()
    if not whole:
        raise PerfVMError(
            f"{url} has no CPUs and memory of any server in the last {period}: "
            "expected node_cpu_seconds_total and node_memory_MemTotal_bytes of "
            "node_exporter"
        )
    return [_server(name, now, used) for name in sorted(whole)]


def _server(
    name: str, now: dict[str, dict[str, float]], used: dict[str, dict[str, float]]
) -> ServerUse:
    total_kib = now["memory_kib"][name]
    ways = [used[key].get(name) for key in ("received", "sent")]
    return ServerUse(
        name=name,
        cpus=int(now["cpus"][name]),
        used_cpus=used["used_cpus"][name],
        memory_gb=kib_in_gib(total_kib),
        used_memory_gb=kib_in_gib(used["used_memory_kib"].get(name, total_kib)),
        network_gbps=max((way for way in ways if way is not None), default=None),
        read_iops=used["read_iops"].get(name),
        write_iops=used["write_iops"].get(name),
    )


def _query(url: str, query: str) -> dict[str, float]:
    """Return {instance: value} of a query.

    :raises PerfVMError: when the URL is wrong, or the server answers without values
    """
    if not url.lower().startswith(("http://", "https://")):
        raise PerfVMError(f"{url!r}: expected a URL such as http://prometheus:9090")
    body = urllib.parse.urlencode({"query": query}).encode()
    try:
        with urllib.request.urlopen(  # noqa: S310 - the scheme was checked
            f"{url.rstrip('/')}/api/v1/query", body, _TIMEOUT_S
        ) as answer:
            found: Any = json.load(answer)
        return {
            one["metric"]["instance"]: float(one["value"][1])
            for one in found["data"]["result"]
        }
    except urllib.error.HTTPError as exc:
        raise PerfVMError(f"{url}: {exc}: {_reason(exc)}") from exc
    # HTTPException: the port is no number, or another protocol answers.
    except (OSError, HTTPException, LookupError, TypeError, ValueError) as exc:
        raise PerfVMError(f"{url} gives no answer of Prometheus: {exc}") from exc


def _reason(exc: urllib.error.HTTPError) -> str:
    """Return the error of an answer, which names the mistake in a query."""
    try:
        return str(json.load(exc)["error"])
    except (KeyError, TypeError, ValueError):
        return "expected the URL of Prometheus"
