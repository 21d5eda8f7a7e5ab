# SPDX-License-Identifier: Apache-2.0
"""Packets that a machine's NICs and kernel lose.

A packet lost in a thousand holds a TCP connection to about 0.9 Gbit/s at a round trip
of 0.5 ms, one in ten thousand to 2.8 (Mathis et al., 1997: 1.22 * MSS / (RTT *
sqrt(loss)), MSS 1448 bytes); a loss above one in ten thousand breaks the promise.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import (
    Check,
    Findings,
    Seen,
    check_of,
    findings_of,
)
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import Collected, NotReadError, values
from nova_perfvm.measure.observed import softnet
from nova_perfvm.measure.observed.nics import NET

FAIL_ABOVE: Final = 1e-4
# Frames without a listener (LLDP, STP) count as dropped, too: one every few seconds.
MOST_PER_S: Final = 1.0
_OFFLOADS: Final = (
    *("rx-checksumming", "tx-checksumming", "scatter-gather"),
    *("tcp-segmentation-offload", "generic-receive-offload"),
)
_RX: Final = ("dropped", "errors", "fifo_errors", "missed_errors", "over_errors")
_TX: Final = ("dropped", "errors", "fifo_errors")
# net.core.netdev_budget by default: packets that a receive round takes in before the
# kernel cuts the round off.
_BUDGET: Final = 300
SQUEEZED_ABOVE: Final = 0.1
REMEDY: Final = (
    "ethtool -S NIC says which queue loses: give it larger rings (ethtool -G NIC rx N, "
    "[libvirt]rx_queue_size for VMs), more queues (ethtool -L), CPUs that have time"
)


class Loss(NamedTuple):
    """The loss counter of a NIC with the largest share.

    :ivar counter: such as ``rx_dropped``
    """

    nic: str
    counter: str
    lost: int
    packets: int

    @property
    def share(self) -> float:
        """Lost packets as a share of all packets in the counter's direction."""
        return self.lost / max(self.lost + self.packets, 1)

    def level(self, seconds: float) -> Level:
        """Return the level of the loss, given the seconds between the looks."""
        if self.lost <= MOST_PER_S * seconds:
            return Level.OK
        return Level.FAILURE if self.share > FAIL_ABOVE else Level.WARNING

    def __str__(self) -> str:
        """Return the counter, its growth and the packets in words."""
        return f"{self.counter} {self.lost} beside {self.packets} packets"


def losses(
    first: Mapping[str, str], later: Mapping[str, str], nics: Collection[str]
) -> Iterator[Loss]:
    """Yield the worst loss of each NIC between two looks; unread NICs are left out.

    A counter that fell restarted from 0: its later value is the growth.
    """
    for nic in nics:
        found = []
        for way, names in (("rx", _RX), ("tx", _TX)):
            base = f"{NET}/{nic}/statistics/{way}_"
            packets = _grown(first, later, f"{base}packets")
            lost = {name: _grown(first, later, base + name) for name in names}
            if packets is not None:
                found += [
                    Loss(nic, f"{way}_{name}", number, packets)
                    for name, number in lost.items()
                    if number is not None
                ]
        if found:
            yield max(found, key=lambda one: (one.share, one.lost, one.packets))


def _grown(first: Mapping[str, str], later: Mapping[str, str], path: str) -> int | None:
    """Return the growth of a counter; None if a look lacks the file."""
    texts = [files.get(path, "").strip() for files in (first, later)]
    if not all(map(str.isdecimal, texts)):
        return None
    was, now = map(int, texts)
    return now - was if now >= was else now


def devices(collected: Collected) -> list[str]:
    """Return the names of NICs with a device: no bridges, taps or VLANs."""
    found = (re.fullmatch(rf"{NET}/([^/]+)/device", link) for link in collected.links)
    return sorted(match[1] for match in found if match)


def speeds(collected: Collected) -> dict[str, int]:
    """Return {NIC that is a device and has a link: Mbit/s}, where that was read."""
    texts = {
        nic: collected.files.get(f"{NET}/{nic}/speed", "") for nic in devices(collected)
    }
    # The kernel shows -1 without a link.
    return {nic: int(text) for nic, text in texts.items() if text.strip().isdecimal()}


def off(collected: Collected, nic: str) -> frozenset[str]:
    """Return the offloads of a NIC that are off, without fixed ones.

    :raises NotReadError: when ``ethtool -k`` was not run, or failed
    """
    command = f"ethtool -k {nic}"
    text = collected.output(command)
    told = values(text)
    if not told.keys() & {*_OFFLOADS}:
        raise NotReadError(command, "it names no offload")
    names = {name for name in _OFFLOADS if told.get(name) == "off"}
    return frozenset(name for name in names if not _fixed(text, name))


def _fixed(text: str, name: str) -> bool:
    """Return whether all features of an offload are fixed; False for one without.

    ``ethtool -k`` (`text`) lists these below the offload, itself never shown as fixed.
    """
    match = re.search(rf"^{name}:.*\n((?:[ \t]+.*\n?)*)", text, re.MULTILINE)
    features = match[1].splitlines() if match else []
    return bool(features) and all("[fixed]" in feature for feature in features)


def settings_of_nics(collected: Collected) -> Findings:
    """Judge offloads of NICs, and the spread of received packets over rings."""
    expected = "offloads on, receiving over all rings"
    for nic in devices(collected):
        remedy = f"ethtool -K {nic} NAME on; ethtool -X {nic} equal RINGS"
        source = f"ethtool -k {nic}; ethtool -x {nic}"
        yield from findings_of(nic, _settings(collected, nic), expected, source, remedy)


def _settings(collected: Collected, nic: str) -> Seen:
    names = ", ".join(sorted(off(collected, nic)))
    yield Level.WARNING if names else Level.OK, f"off: {names or 'none'}"
    with suppress(NotReadError):
        # Drivers without an RSS table make ethtool fail.
        table = collected.output(f"ethtool -x {nic}")
        rings = re.search(r"with (\d+) RX ring", table)
        rows = re.findall(r"^ *\d+:((?: +\d+)+) *$", table, re.MULTILINE)
        used = {ring for row in rows for ring in row.split()}
        if rings and used and len(used) < int(rings[1]):
            yield Level.WARNING, f"RSS uses {len(used)} of {rings[1]} rings"


def findings_of_nics(collected: Collected, nics: Collection[str]) -> Findings:
    """Judge the packet losses of NICs between the looks."""
    if not collected.interval_s or not collected.later:
        raise NotReadError(f"{NET}/*/statistics", "it was read only once")
    seen = {one.nic: one for one in losses(collected.files, collected.later, nics)}
    expected = f"at most {MOST_PER_S:g} lost a second, and 1 in {1 / FAIL_ABOVE:.0f}"
    for nic in nics:
        look = _of_nic(collected, seen.get(nic))
        yield from findings_of(nic, look, expected, f"{NET}/{nic}/statistics", REMEDY)


def _of_nic(collected: Collected, one: Loss | None) -> Seen:
    if one is None:
        raise NotReadError(f"{NET}/*/statistics", "packet counters were not read")
    if one.lost or one.packets:
        yield one.level(collected.interval_s), f"{one} between the looks"


def backlogs(order: int, code: str) -> Check:
    """Return the check of backlog drops and cut-off receive rounds of a kernel."""
    return check_of(
        order,
        code,
        source=softnet.PATH,
        remedy="spread the packets over more CPUs (guest.nic_queues, guest.nic_vectors "
        "and guest.rps say how); then sysctl -w net.core.netdev_max_backlog=10000 "
        "net.core.netdev_budget=600 net.core.netdev_budget_usecs=8000",
    )(_look_at_backlogs)


def _look_at_backlogs(machine: HostSubject | GuestSubject) -> Seen:
    """No packet is dropped, and few wait for another round."""
    backlogs = softnet.read(machine.collected)
    processed = {cpu: b.processed for cpu, b in backlogs.items() if b.processed}
    if not processed:
        raise NotReadError(softnet.PATH, "no packet came between the two looks")
    worst = max(backlogs, key=lambda cpu: backlogs[cpu].dropped)
    lost = sum(backlog.dropped for backlog in backlogs.values())
    packets = lost + sum(processed.values())
    level = Level.FAILURE if lost / packets > FAIL_ABOVE else Level.WARNING
    shown = f"{lost} of {packets} packets dropped, most on CPU {worst}"
    yield level if lost else Level.OK, shown
    shares = {
        cpu: min(1.0, backlogs[cpu].squeezed * _BUDGET / number)
        for cpu, number in processed.items()
    }
    cpu, most = max(shares.items(), key=lambda item: item[1])
    level = Level.WARNING if most > SQUEEZED_ABOVE else Level.OK
    yield level, f"{most:.1%} of the packets of CPU {cpu} in rounds that were cut off"
