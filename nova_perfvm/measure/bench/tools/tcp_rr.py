# SPDX-License-Identifier: Apache-2.0
"""TCP_RR: requests that each wait for the response to the one before.

fio's network engine sends and waits, and keeps a histogram of the round trips.
netperf, after which the figure is named, is non-free in Debian.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from nova_perfvm.measure.bench.tools import fio, tool

# Each job takes the next port.
_BOTH: Final = """
fio --name=rr --thread --numjobs={1} --ioengine=net --protocol={2} --port={3}
--pingpong=1 --nodelay=1 --bs=64 --size=1t
"""
_SERVER: Final = f"{_BOTH} --listen --rw=read"
_CLIENT: Final = f"""
{_BOTH} --hostname={{0.address}} --rw=write --runtime={{0.seconds}} --time_based=1
--group_reporting --output-format=json+
"""


@dataclass(frozen=True, slots=True)
class TCPRR(tool.Served):
    """Requests of 64 bytes, and responses of as many."""

    seconds: tool.Seconds = 30

    program: ClassVar[str] = fio.NAME

    def runs(self, place: tool.Place) -> Iterator[tool.Run]:
        """Yield the runs, one for each number of connections."""
        for connections in self.connections:
            protocol = "tcpv6" if ":" in self.address else "tcp"
            values = (self, connections, protocol, self.first_port(place))
            server = tool.ServerCommand(
                *(self.server, tool.words(_SERVER, *values)),
                ready="waiting for connection",
                times=connections,
            )
            client = tool.words(_CLIENT, *values)
            of_run = ("tcp_rr", connections, self.seconds)
            yield tool.Run(fio.NAME, *of_run, client, parse, server)


@tool.output_of(fio.NAME)
def parse(text: str) -> dict[str, float]:
    """Read fio's JSON.

    :raises OutputError: when it is no such thing, or nobody answered
    """
    sent = fio.job_of(text)["write"]
    if not sent["total_ios"]:
        raise tool.OutputError("fio: no request was answered")
    return fio.figures("network.tcp_rr_per_second", "network.tcp_rr_latency", sent)
