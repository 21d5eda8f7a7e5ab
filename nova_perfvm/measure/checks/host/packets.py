# SPDX-License-Identifier: Apache-2.0
"""The host loses no packets: neither its kernel, nor its NICs, nor those of VMs."""

from collections.abc import Iterator

from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks import packets
from nova_perfvm.measure.checks.check import Check
from nova_perfvm.measure.checks.host_subject import HostSubject


def find(subject: HostSubject) -> Iterator[Finding]:
    """Judge what is lost, and what waited, on the CPU where it is worst."""
    return packets.judge_backlogs(subject.collected)


def nics(subject: HostSubject) -> list[str]:
    """Return the host's NICs, and those that it has for VMs."""
    found = packets.devices(subject.collected)
    return [
        *found,
        *(i.target for d in subject.domains for i in d.interfaces if i.target),
    ]


def find_nics(subject: HostSubject) -> Iterator[Finding]:
    """Judge what each NIC loses."""
    return packets.judge_nics(subject.collected, nics(subject))


CHECKS = (
    Check(80, "hypervisor.softnet_drops", "The host loses no packets", find),
    Check(81, "hypervisor.nic_losses", "NICs of host and VMs lose none", find_nics),
)
