# SPDX-License-Identifier: Apache-2.0
"""What the host's CPUs can do, those of its guests can do."""

from __future__ import annotations

from collections.abc import Iterator

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import cpu_flags
from nova_perfvm.measure.prove.inputs import Inputs


def find(inputs: Inputs) -> Iterator[Finding]:
    """Compare the flags of each guest with its host's."""
    host = inputs.host.collected
    if cpu_flags.is_arm(host):
        reason = "KVM knows no CPU but the host's there"
        yield skipped("", reason, cpu_flags.PATH, cause=Cause.HARDWARE_DECIDES)
        return
    given = cpu_flags.read(host)
    for guest in inputs.guests:
        try:
            lacks = given - cpu_flags.read(guest.collected)
        except NotReadError as exc:
            yield skipped(guest.name, exc.reason, exc.place)
            continue
        needed, newer = lacks & cpu_flags.NEEDED, lacks & cpu_flags.NEWER
        listed = ", ".join(sorted(needed) + sorted(newer))
        yield judged(
            guest.name,
            "each flag that the host's CPUs have, and programs use",
            f"lacks {listed}" if listed else "it has them",
            f"{cpu_flags.PATH} of the guest and of {host.hostname}",
            holds=not listed,
            otherwise=Level.FAILURE if needed else Level.WARNING,
            remedy="[libvirt]cpu_mode = host-passthrough or host-model in nova.conf of "
            "the host, no cpu_models; then openstack server reboot --hard. If it stays "
            "so, look at clearcpuid and the like on the guest's command line",
        )


CHECK = Check(45, "certify.cpu_flags", "Guests have what their host's CPUs can", find)
