# SPDX-License-Identifier: Apache-2.0
"""The guest's kernel and its NICs drop no packets, and keep up with all that arrive."""

from collections.abc import Iterator

from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks import packets
from nova_perfvm.measure.checks.check import Check
from nova_perfvm.measure.checks.guest_subject import GuestSubject


def find(subject: GuestSubject) -> Iterator[Finding]:
    """Judge what is lost, and what waited, on the CPU where it is worst."""
    return packets.judge_backlogs(subject.collected)


def find_nics(subject: GuestSubject) -> Iterator[Finding]:
    """Judge what each NIC loses."""
    nics = packets.devices(subject.collected)
    return packets.judge_nics(subject.collected, nics)


CHECKS = (
    Check(90, "guest.softnet_drops", "The guest loses no packets", find),
    Check(91, "guest.nic_losses", "The guest's NICs lose no packets", find_nics),
)
