# SPDX-License-Identifier: Apache-2.0
"""XPS and RPS of a network interface agree with its queues."""

from collections import Counter
from collections.abc import Iterator

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.checks.vectors import FIX_SCRIPT
from nova_perfvm.measure.observed.cpus import mask
from nova_perfvm.measure.observed.nics import NET, NIC, queues_of


def _masks(
    subject: GuestSubject, nic: NIC, direction: str, name: str
) -> dict[int, frozenset[int]]:
    seen = subject.collected
    queues = queues_of(seen, nic.name, direction)
    paths = {queue: f"{path}/{name}" for queue, path in queues.items()}
    return {q: mask(seen, path) for q, path in paths.items() if path in seen.files}


def find_xps(subject: GuestSubject) -> Iterator[Finding]:
    """Look that each CPU sends over one queue."""
    online = subject.online.numbers
    for nic in subject.nics:
        masks = _masks(subject, nic, "tx", "xps_cpus")
        if len(masks) < 2:
            reason = "its masks were not read, or it has one queue: no choice to make"
            yield skipped(nic.name, reason)
            continue
        queues = Counter(cpu for cpus in masks.values() for cpu in cpus & online)
        none = format_cpus(online - set(queues))
        several = format_cpus(cpu for cpu, count in queues.items() if count > 1)
        # As many CPUs to a queue as there are more CPUs.
        yield judged(
            nic.name,
            f"each of {len(online)} CPUs sends over one of {len(masks)} queues",
            f"CPUs without a queue: {none or 'none'}; with several: "
            f"{several or 'none'}",
            f"{NET}/{nic.name}/queues/tx-*/xps_cpus",
            holds=not none and not several,
            # A queue is then chosen by a hash: right, but with locks that several
            # CPUs want, and not the queue whose interrupts come to this CPU.
            otherwise=Level.WARNING,
            remedy=FIX_SCRIPT,
        )


def find_rps(subject: GuestSubject) -> Iterator[Finding]:
    """Look that no CPU hands packets on that came to the right one."""
    for nic in subject.nics:
        masks = _masks(subject, nic, "rx", "rps_cpus")
        if not masks:
            yield skipped(nic.name, "its masks were not read")
            continue
        if len(masks) < subject.vcpus:
            reason = "it has fewer queues than CPUs: guest.nic_queues says what to do"
            yield skipped(nic.name, reason)
            continue
        given = [queue for queue, cpus in masks.items() if cpus]
        yield judged(
            nic.name,
            "off, as there is a queue for each CPU",
            f"on for queues {format_cpus(given)}" if given else "off for all queues",
            f"{NET}/{nic.name}/queues/rx-*/rps_cpus",
            holds=not given,
            # An interrupt to another CPU for packets that were on one of their own.
            otherwise=Level.WARNING,
            remedy=f"for f in {NET}/{nic.name}/queues/rx-*/rps_cpus; "
            "do echo 0 > $f; done",
        )


CHECKS = (
    Check(50, "guest.xps", "Each CPU sends over a queue of its own", find_xps),
    Check(55, "guest.rps", "Packets stay on the CPU of their queue", find_rps),
)
