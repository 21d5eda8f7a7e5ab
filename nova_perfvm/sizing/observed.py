# SPDX-License-Identifier: Apache-2.0
"""Make services of the servers that monitoring observed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.sizing.services import Peak, Service

# The part of each statistic's values that lie at or below it.
QUANTILES: Final[dict[Peak, float]] = {"max": 1.0, "p99": 0.99, "p95": 0.95}
# redis-01.example.org:9100 is a server of redis.
BY_NAME: Final = r"([a-zA-Z][a-zA-Z0-9_-]*?)[-_]?\d*(?:[.:].*)?"
_KIB: Final = 1024
_GIB: Final = 1024**3
# Devices whose traffic or I/O also passes a physical device.
VIRTUAL_NICS: Final = (
    r"lo|.*\..*|(bond|br|cali|cni|docker|dummy|flannel|ifb|ovs|qbr|qvb|qvo|tap|team|tun"
    r"|veth|virbr|vlan|vnet|vxlan).*"
)
VIRTUAL_DISKS: Final = r"(dm-|loop|md|nbd|ram|sr|zram).*"


class ServerUse(NamedTuple):
    """The peaks of one server.

    :ivar cpus: the server's CPUs; ``used_cpus``: busy CPUs at the peak
    :ivar network_gbps: the larger of received and sent; None, as IOPS, if not observed
    """

    name: str
    cpus: int
    used_cpus: float
    memory_gb: float
    used_memory_gb: float
    network_gbps: float | None = None
    read_iops: float | None = None
    write_iops: float | None = None


def quantile(values: Sequence[float], peak: Peak) -> float:
    """Return the largest value, or the percentile by nearest rank."""
    return sorted(values)[math.ceil(QUANTILES[peak] * len(values)) - 1]


def services_of(
    servers: Iterable[ServerUse], pattern: str, peak: Peak
) -> tuple[Service, ...]:
    """Return a service for each name that a pattern finds in servers' names.

    Each figure of a service is the largest of its servers.

    :param pattern: regular expression that matches a server's whole name; its first
        group is the service
    :raises PerfVMError: when the pattern is invalid, or does not match a server, or a
        server is given twice
    """
    try:
        matches = re.compile(pattern).fullmatch
    except re.error as exc:
        raise PerfVMError(f"--service-of {pattern!r}: {exc}") from exc
    found: dict[str, list[ServerUse]] = {}
    known = set()
    for server in servers:
        if server.name in known:
            raise PerfVMError(
                f"server {server.name} is given twice, and would count as two: name "
                "its output of sadf, or --prometheus"
            )
        known.add(server.name)
        match = matches(server.name)
        if match is None or not match.groups() or not match[1]:
            raise PerfVMError(
                f"server {server.name}: --service-of {pattern!r} finds no service in "
                "the name: expected an expression whose first group is the service"
            )
        found.setdefault(match[1], []).append(server)
    return tuple(_service(name, same, peak) for name, same in sorted(found.items()))


def _service(name: str, servers: Sequence[ServerUse], peak: Peak) -> Service:
    cpus = max(server.cpus for server in servers)
    used = max(server.used_cpus for server in servers)
    return Service(
        name=name,
        servers=len(servers),
        cpus=cpus,
        # A service that did nothing still needs a VM.
        cpu_percent=min(100.0, max(0.1, _rounded_up(100 * used / cpus, 1))),
        memory_gb=_most(servers, "memory_gb"),
        used_memory_gb=_most(servers, "used_memory_gb"),
        network_gbps=_most(servers, "network_gbps"),
        read_iops=_most(servers, "read_iops"),
        write_iops=_most(servers, "write_iops"),
        peak=peak,
    )


def _most(servers: Iterable[ServerUse], key: str) -> float | None:
    """Return the largest value, rounded up to 0.001; None where it is 0 or unknown."""
    known = [value for server in servers if (value := getattr(server, key))]
    return _rounded_up(max(known), 3) if known else None


def _rounded_up(value: float, digits: int) -> float:
    # As a float, 0.07 * 100 is 7.000000000000001.
    unit = 10.0**digits
    return math.ceil(round(value * unit, 6)) / unit


def kib_in_gib(kib: float) -> float:
    """Convert KiB to GiB."""
    return kib * _KIB / _GIB
