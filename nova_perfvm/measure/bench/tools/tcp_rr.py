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
    OutputError,
    Place,
    Run,
    Seconds,
    Served,
    ServerCommand,
    output_of,
)


@dataclass(frozen=True, slots=True)
class TCPRR(Served):
    """Requests of 64 bytes, and responses of as many."""

    seconds: Seconds = 30

    program: ClassVar[str] = fio.NAME

    def runs(self, place: Place) -> Iterator[Run]:
        """Yield the runs, one for each number of connections."""
        for connections in self.connections:
            protocol = "tcpv6" if ":" in self.address else "tcp"
            # Each job takes the next port.
            port = self.first_port(place)
            common = (
                *(fio.NAME, "--name=rr", "--thread", f"--numjobs={connections}"),
                *("--ioengine=net", f"--protocol={protocol}", f"--port={port}"),
                *("--pingpong=1", "--nodelay=1", "--bs=64", "--size=1t"),
            )
            client = (
                *(*common, f"--hostname={self.address}", "--rw=write"),
                *(f"--runtime={self.seconds}", "--time_based=1"),
                *("--group_reporting", "--output-format=json+"),
            )
            server = ServerCommand(
                self.server,
                (*common, "--listen", "--rw=read"),
                ready="waiting for connection",
                times=connections,
            )
            of_run = ("tcp_rr", connections, self.seconds)
            yield Run(fio.NAME, *of_run, client, parse, server)


@output_of(fio.NAME)
def parse(text: str) -> dict[str, float]:
    """Read fio's JSON.

    :raises OutputError: when it is no such thing, or nobody answered
    """
    sent = fio.job_of(text)["write"]
    if not sent["total_ios"]:
        raise OutputError("fio: no request was answered")
    return fio.figures("network.tcp_rr_per_second", "network.tcp_rr_latency", sent)
