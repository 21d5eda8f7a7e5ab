# SPDX-License-Identifier: Apache-2.0
"""Packets that a machine's NICs and kernel lose.

A packet lost in a thousand holds a TCP connection to about 0.9 Gbit/s at a round trip
of 0.5 ms, one in ten thousand to 2.8 (Mathis et al., 1997: 1.22 * MSS / (RTT *
sqrt(loss)), MSS 1448 bytes); so from there on it breaks the promise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import judged, skipped, warned
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed import softnet, stat
from nova_perfvm.measure.observed.nics import NET

FAIL_ABOVE: Final = 1e-4
# Frames that nobody listens to, of LLDP or STP, count as dropped, too: one in seconds.
MOST_PER_S: Final = 1.0
_RX: Final = ("dropped", "errors", "fifo_errors", "missed_errors", "over_errors")
_TX: Final = ("dropped", "errors", "fifo_errors")
# Of packets that were taken in by rounds that were cut off: net.core.netdev_budget
# packets each, by default.
_BUDGET: Final = 300
SQUEEZED_ABOVE: Final = 0.1
REMEDY: Final = (
    "larger rings (ethtool -G NIC rx N, hw_rx_queue_size of [libvirt]rx_queue_size for "
    "VMs), more queues (ethtool -L), and CPUs that have time for them: ethtool -S NIC "
    "says which queue loses"
)


class Loss(NamedTuple):
    """What a NIC lost most of.

    :ivar counter: such as ``rx_dropped``
    """

    nic: str
    counter: str
    lost: int
    packets: int

    @property
    def share(self) -> float:
        """The share of all packets of that direction."""
        return self.lost / max(self.lost + self.packets, 1)

    def level(self, seconds: float) -> Level:
        """Return how bad it is, if it happened in so many seconds."""
        if self.lost <= MOST_PER_S * seconds:
            return Level.OK
        return Level.FAILURE if self.share > FAIL_ABOVE else Level.WARNING

    def __str__(self) -> str:
        """Return the figures."""
        return f"{self.counter} {self.lost} beside {self.packets} packets"


def losses(
    first: Mapping[str, str], later: Mapping[str, str], nics: Collection[str]
) -> Iterator[Loss]:
    """Yield what each NIC lost between two looks at files; nothing of an unread one.

    Counters that began anew count from there.
    """
    for nic in nics:
        found = []
        for way, names in (("rx", _RX), ("tx", _TX)):
            grown = {}
            for name in (*names, "packets"):
                path = f"{NET}/{nic}/statistics/{way}_{name}"
                texts = [files.get(path, "").strip() for files in (first, later)]
                if all(map(str.isdecimal, texts)):
                    was, now = map(int, texts)
                    grown[name] = now - was if now >= was else now
            packets = grown.pop("packets", None)
            if packets is not None:
                found += [
                    Loss(nic, f"{way}_{name}", lost, packets)
                    for name, lost in grown.items()
                ]
        if found:
            yield max(found, key=lambda one: (one.share, one.lost, one.packets))


def devices(collected: Collected) -> list[str]:
    """Return the NICs that are devices."""
    found = (path.split("/") for path in collected.links)
    return sorted(
        p[4] for p in found if p[1:4] == NET.split("/")[1:] and p[5:] == ["device"]
    )


def judge_nics(collected: Collected, nics: Collection[str]) -> Iterator[Finding]:
    """Judge what NICs lost between the looks, and warn of what they did before."""
    source = f"{NET}/*/statistics"
    if not collected.interval_s or not collected.later:
        raise NotReadError(source, "it was read only once")
    seen = list(losses(collected.files, collected.later, nics))
    for unread in sorted(set(nics) - {one.nic for one in seen}):
        yield skipped(
            unread, "what it loses was not read", f"{NET}/{unread}/statistics"
        )
    try:
        up_s = collected.time.timestamp() - stat.booted_s(collected)
    except NotReadError:
        up_s = 0.0
    nothing = {path: "0" for path in collected.files if path.startswith(f"{NET}/")}
    before = {one.nic: one for one in losses(nothing, collected.files, nics)}
    busy = [one for one in seen if one.lost or one.packets]
    if seen and not busy:
        yield skipped("", "no packet came between the two looks", source)
    for one in busy:
        level = one.level(collected.interval_s)
        yield judged(
            one.nic,
            f"at most {MOST_PER_S:g} a second, and 1 in {1 / FAIL_ABOVE:.0f}",
            f"{one} between the looks",
            f"{NET}/{one.nic}/statistics",
            holds=level is Level.OK,
            otherwise=level,
            remedy=REMEDY,
        )
        past = before[one.nic]
        if up_s > 0 and past.level(up_s) is Level.FAILURE:
            yield warned(
                f"{one.nic} since boot",
                f"at most 1 in {1 / FAIL_ABOVE:.0f}",
                f"{past}: {past.share:.2%}",
                f"{NET}/{one.nic}/statistics",
                REMEDY,
            )


def judge_backlogs(collected: Collected) -> Iterator[Finding]:
    """Judge what is lost, and what waited, on the CPU where it is worst."""
    backlogs = softnet.read(collected)
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
