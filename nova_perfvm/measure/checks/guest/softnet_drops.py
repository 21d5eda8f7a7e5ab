# SPDX-License-Identifier: Apache-2.0
"""The guest's kernel drops no packets, and keeps up with all that arrive.

A packet lost in a thousand holds a TCP connection to about 0.9 Gbit/s at a round trip
of 0.5 ms, one in ten thousand to 2.8 (Mathis et al., 1997: 1.22 * MSS / (RTT *
sqrt(loss)), MSS 1448 bytes); so from there on it breaks the promise.
"""

from collections.abc import Iterator

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.observed import softnet

FAIL_ABOVE = 1e-4
# Of packets that were taken in by rounds that were cut off: net.core.netdev_budget
# packets each, by default.
_BUDGET = 300
SQUEEZED_ABOVE = 0.1


def find(subject: GuestSubject) -> Iterator[Finding]:
    """Judge what is lost, and what waited, on the CPU where it is worst."""
    backlogs = softnet.read(subject.collected)
    processed = sum(b.processed for b in backlogs.values())
    if not processed:
        yield skipped("", "no packet came between the two looks", softnet.PATH)
        return
    dropped = {cpu: b.dropped for cpu, b in backlogs.items()}
    lost = sum(dropped.values())
    worst = max(dropped, key=lambda cpu: dropped[cpu])
    where = f", most on CPU {worst}" if lost else ""
    yield judged(
        "drops",
        "no packet dropped",
        f"{lost} of {processed + lost} packets{where}",
        softnet.PATH,
        holds=not lost,
        otherwise=Level.FAILURE
        if lost / (processed + lost) > FAIL_ABOVE
        else Level.WARNING,
        remedy="sysctl -w net.core.netdev_max_backlog=10000; if one CPU has most, "
        "guest.nic_queues, guest.nic_vectors and guest.rps say why",
    )
    shares = {
        cpu: min(1.0, b.squeezed * _BUDGET / b.processed)
        for cpu, b in backlogs.items()
        if b.processed
    }
    cpu = max(shares, key=lambda cpu: shares[cpu])
    yield judged(
        "rounds cut off",
        f"at most {SQUEEZED_ABOVE:.0%} of the packets of a CPU",
        f"{shares[cpu]:.1%} on CPU {cpu}, {backlogs[cpu].squeezed} rounds",
        softnet.PATH,
        holds=shares[cpu] <= SQUEEZED_ABOVE,
        otherwise=Level.WARNING,
        remedy="spread the packets over more CPUs (guest.nic_queues); then sysctl -w "
        "net.core.netdev_budget=600 net.core.netdev_budget_usecs=8000",
    )


CHECK = Check(90, "guest.softnet_drops", "The guest loses no packets", find)
