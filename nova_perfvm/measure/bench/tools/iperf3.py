# SPDX-License-Identifier: Apache-2.0
"""iperf3: throughput of TCP, how far it and the round trips stray; packets of UDP.

Before version 3.16 (Debian 12 has 3.12) all streams of a process share a thread,
which is the limit long before 25 Gbit/s are: several processes run at once.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Final, Literal

from nova_perfvm.documents.keys import EACH_ONCE, Expected, count, some
from nova_perfvm.measure.bench.tools import tool

NAME: Final = "iperf3"

# Percentile of the rates in intervals of a second, iperf3's default.  With fewer
# intervals than _LEAST_INTERVALS the percentile would be the lowest rate.
_PERCENTILE: Final = 5
# What else changes the figures that a run leaves.
_SENDING: Final = ("blksize", "target_bitrate", "omit")
_TOGETHER_S: Final = 2
_LEAST_INTERVALS: Final = 100 // _PERCENTILE
# A seventeenth connection may not fail a run for a moment's load.
_LINE: Final = (
    "iperf3 --client {0.address} --json --time {0.seconds} --omit {1} "
    "--connect-timeout 10000 "
)
# UDP with small packets: each packet costs then, not its bytes.
_PROTOCOLS: Final = {"tcp": "", "udp": "--udp --length 64 --bitrate 0 "}
_DIRECTIONS: Final = {"send": "", "receive": "--reverse"}
# Each process writes to a file, as they would mix on one standard output.
_CLIENTS: Final = """\
d=$(mktemp -d) || exit
trap 'rm -rf "$d"' EXIT
ports=$(seq "$1" "$(($1 + $2 - 1))")
shift 2
for port in $ports; do "$@" --port "$port" > "$d/$port" & done
wait
cat "$d"/*
"""
_SERVERS: Final = """\
for port in $(seq "$1" "$(($1 + $2 - 1))"); do
  iperf3 --server --one-off --forceflush --port "$port" &
done
wait
"""


@dataclass(frozen=True, slots=True)
class IPerf3:
    """``iperf3`` between the targets and a machine that serves.

    Each connection is a process.

    :ivar server: name of the target that serves, on which nothing is measured
    :ivar address: IP address of the server
    :ivar port: the first port; all connections of all targets at once have a port each
    :ivar connections: numbers of connections, each measured
    :ivar protocols: tcp for bits per second; udp for arriving small packets per second
    :ivar directions: from the targets, and to the targets
    :ivar omit_s: seconds at the start that are dropped, in which TCP finds its speed
    """

    server: Annotated[str, Expected("the name of a target")]
    address: Annotated[str, some("an address of the server")]
    port: Annotated[int, count(1024, 65535, "a port")] = 5201
    connections: tool.Threads = (1, tool.VCPUS)
    seconds: tool.Seconds = 30
    omit_s: Annotated[int, count(0, 60, "seconds")] = 2
    protocols: Annotated[
        tuple[Literal["tcp", "udp"], ...],
        some("a list of tcp, udp, or both"),
        EACH_ONCE,
    ] = ("tcp", "udp")
    directions: Annotated[
        tuple[Literal["send", "receive"], ...],
        some("a list of send, receive, or both"),
        EACH_ONCE,
    ] = ("send", "receive")

    program: ClassVar[str] = NAME

    def last_port(self, targets: int) -> int:
        """Return the highest port that a number of targets at once need."""
        return self.port + targets * max(self.connections) - 1

    def runs(self, place: tool.Place) -> Iterator[tool.Run]:
        """Yield a run for each protocol, direction and number of connections."""
        for protocol, direction, connections in itertools.product(
            self.protocols, self.directions, self.connections
        ):
            # The packets that are lost are counted with those that are dropped.
            omit_s = self.omit_s if protocol == "tcp" else 0
            line = _LINE + _PROTOCOLS[protocol] + _DIRECTIONS[direction]
            client = tool.words(line, self, omit_s)
            first_port = self.port + place.number * max(self.connections)
            ports = (str(first_port), str(connections))
            yield tool.Run(
                *(NAME, f"iperf3 {protocol} {direction}"),
                *(connections, self.seconds + omit_s),
                tool.shell(_CLIENTS, *ports, *client),
                partial(_of_clients, connections),
                tool.ServerCommand(
                    *(self.server, tool.shell(_SERVERS, *ports)),
                    ready="Server listening",
                    times=connections,
                ),
                # Each process prints some 1,000 bytes for each second.
                most_bytes=2**16 * connections * (1 + self.seconds // 16),
            )


def _of_clients(connections: int, text: str) -> dict[str, float]:
    """Return {metric: value} of the JSON of all processes of a run.

    :raises OutputError: as :func:`parse`, or when a process printed nothing
    """
    figures = parse(text)
    printed = len(tool.documents_of(NAME, text))
    if printed < connections:
        # The printed rates would pass for the rate of all processes.
        reason = f"only {printed} of {connections} processes printed their figures"
        raise tool.OutputError(f"iperf3: {reason}: were the others killed?")
    return figures


@tool.output_of(NAME)
def parse(text: str) -> dict[str, float]:
    """Return {metric: value} of the JSON of one process, or of several in sum.

    :raises OutputError: when the text is no output of iperf3, a process failed, both
        directions ran at once, or the traffic often stood still
    """
    found = tool.documents_of(NAME, text, "--json")
    for document in found:
        if "error" in document:
            raise tool.OutputError(f"iperf3: {document['error']}")
        if _test(document)["num_streams"] < len(document["end"]["streams"]):
            reason = "both directions at once (--bidir), which share what there is"
            remedy = "measure without that option, then with --reverse"
            raise tool.OutputError(f"iperf3: {reason}: {remedy}")
    test = _test(found[0])
    ends = [document["end"] for document in found]
    name = "network.received" if test["reverse"] else "network"
    if test["protocol"] == "UDP":
        arrived = [
            (end["sum"]["packets"] - end["sum"]["lost_packets"]) / end["sum"]["seconds"]
            for end in ends
        ]
        return {f"{name}.packets_per_second": sum(arrived)}
    metric = f"{name}.bits_per_second"
    rate = sum(end["sum_received"]["bits_per_second"] for end in ends)
    low = _low_rate(f"{metric}_p{_PERCENTILE}", map(_rates, found))
    return {metric: rate} | low | _round_trips(f"{name}.latency_rtt", ends)


@tool.output_of(NAME)
def conditions(text: str) -> dict[str, Any]:
    """Return the conditions that rounds share: streams, and how they send.

    :raises OutputError: when several processes did not start together
    """
    found = tool.documents_of(NAME, text, "--json")
    starts = [one["start"].get("timestamp", {}).get("timesecs") for one in found]
    if len(found) > 1 and (None in starts or max(starts) - min(starts) > _TOGETHER_S):
        reason = f"{len(found)} processes that did not start together"
        raise tool.OutputError(f"iperf3: {reason}: give each a file of its own")
    threads, first = sum(_test(o)["num_streams"] for o in found), _test(found[0])
    return {"threads": threads} | {key: first.get(key) for key in _SENDING}


def _test(document: Any) -> Any:
    return document["start"]["test_start"]


def _low_rate(metric: str, of_each: Iterable[list[float]]) -> dict[str, float]:
    """Return {metric: rate} that 95 % of intervals reach, of all processes in sum.

    Empty for fewer than ``_LEAST_INTERVALS`` intervals; OutputError for a rate of 0.
    """
    # The processes start together, so their intervals coincide.
    together = sorted(map(sum, zip(*of_each, strict=False)))
    if len(together) < _LEAST_INTERVALS:
        return {}
    low = together[math.ceil(len(together) * _PERCENTILE / 100) - 1]
    if not low > 0:
        # There is no ratio to 0, and without a figure the worst would be hidden.
        raise tool.OutputError(f"iperf3: it stood still in {_PERCENTILE} % of the time")
    return {metric: low}


def _rates(document: Any) -> list[float]:
    """Return the rate of each whole interval that is not dropped at the start."""
    sums = [interval["sum"] for interval in document["intervals"]]
    kept = [one for one in sums if not one["omitted"]]
    # The last interval may be a short rest.
    least = statistics.median(one["seconds"] for one in kept) / 2 if kept else 0
    return [one["bits_per_second"] for one in kept if one["seconds"] > least]


def _round_trips(metric: str, ends: Iterable[Any]) -> dict[str, float]:
    """Return the mean and longest round trip in ms; empty unless all senders have it.

    iperf3 asks the sender's kernel once an interval for its smoothed time: the longest
    is no maximum of all packets.
    """
    senders = [stream["sender"] for end in ends for stream in end["streams"]]
    # Receivers have 0, and kernels but Linux nothing.
    if not all(sender.get("max_rtt") for sender in senders):
        return {}
    mean_us = statistics.fmean(sender["mean_rtt"] for sender in senders)
    longest_us = max(sender["max_rtt"] for sender in senders)
    return {f"{metric}_mean_ms": mean_us / 1000, f"{metric}_max_ms": longest_us / 1000}
