# SPDX-License-Identifier: Apache-2.0
"""TCP_RR: requests that each wait for the response to the one before.

fio's network engine sends and waits, and keeps a histogram of the round trips.
netperf, after which the figure is named, is non-free in Debian.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from nova_perfvm.measure.bench.tools import fio
from nova_perfvm.measure.bench.tools.tool import (
    Figure,
    OutputError,
    Place,
    Run,
    Seconds,
    Served,
    ServerCommand,
    at,
    number,
)


@dataclass(frozen=True, slots=True)
class TCPRR(Served):
    """Requests of 64 bytes, and responses of as many."""

    seconds: Seconds = 30

    program: ClassVar[str] = fio.NAME

    def runs(self, place: Place) -> Iterator[Run]:
        """Yield the runs, one for each number of connections."""
        for connections in self.connections:
            common = (
                *(fio.NAME, "--name=rr", "--thread", f"--numjobs={connections}"),
                "--ioengine=net",
                f"--protocol={'tcpv6' if ':' in self.address else 'tcp'}",
                # Each job takes the next port.
                f"--port={self.first_port(place)}",
                *("--pingpong=1", "--nodelay=1", "--bs=64", "--size=1t"),
            )
            yield Run(
                fio.NAME,
                "tcp_rr",
                connections,
                self.seconds,
                (
                    *(*common, f"--hostname={self.address}", "--rw=write"),
                    *(f"--runtime={self.seconds}", "--time_based=1"),
                    *("--group_reporting", "--output-format=json+"),
                ),
                parse,
                ServerCommand(
                    self.server,
                    (*common, "--listen", "--rw=read"),
                    "waiting for connection",
                    connections,
                ),
            )


def parse(text: str) -> list[Figure]:
    """Read fio's JSON.

    :raises OutputError: when it is no such thing, or nobody answered
    """
    sent = at(fio.job_of(text), "write")
    if not number(sent, "total_ios"):
        raise OutputError("fio: no request was answered")
    rate = number(sent, "iops")
    return [
        Figure("network.tcp_rr_per_second", rate, "1/s", "higher"),
        *fio.tails("network.tcp_rr_latency", sent),
    ]
