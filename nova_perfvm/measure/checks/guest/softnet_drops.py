# SPDX-License-Identifier: Apache-2.0
"""The guest's kernel and its NICs drop no packets, and keep up with all that arrive."""

from nova_perfvm.measure.checks import packets
from nova_perfvm.measure.checks.check import Findings, check
from nova_perfvm.measure.checks.guest_subject import GuestSubject

SOFTNET_DROPS = packets.backlogs(90, "guest.softnet_drops")


@check(91, "guest.nic_losses")
def nic_losses(guest: GuestSubject) -> Findings:
    """NICs of the guest lose no packets."""
    nics = packets.devices(guest.collected)
    return packets.findings_of_nics(guest.collected, nics)


@check(92, "guest.nic_settings")
def nic_settings(guest: GuestSubject) -> Findings:
    """NICs of the guest have their offloads, and spread packets over all rings."""
    return packets.settings_of_nics(guest.collected)
