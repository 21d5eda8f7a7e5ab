# SPDX-License-Identifier: Apache-2.0
"""tuned has a profile for hypervisors."""

from collections.abc import Iterator

from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.check import Check, passed, skipped, warned
from nova_perfvm.measure.checks.host_subject import HostSubject

_PATH = "/etc/tuned/active_profile"
_GOOD = frozenset(
    {
        *("cpu-partitioning", "virtual-host", "realtime-virtual-host"),
        *("latency-performance", "network-latency", "throughput-performance"),
        "network-throughput",
    }
)
# Of tuned's own: they save power, or are for other machines.
_BAD = frozenset(
    {
        *("balanced", "balanced-battery", "powersave", "desktop", "desktop-powersave"),
        *("virtual-guest", "realtime-virtual-guest", "laptop-battery-powersave"),
        *("laptop-ac-powersave", "server-powersave", "default", "spindown-disk"),
    }
)


def find(subject: HostSubject) -> Iterator[Finding]:
    """Look at the active profile; it may name several."""
    profiles = subject.collected.text(_PATH).split()
    shown = " ".join(profiles) or "none"
    expected = "cpu-partitioning or virtual-host"
    if _GOOD.intersection(profiles) and not _BAD.intersection(profiles):
        yield passed("profile", expected, shown, _PATH)
    elif profiles and not _BAD.intersection(profiles):
        reason = f"{shown} is none of tuned's own: see what it includes"
        yield skipped("profile", reason, _PATH)
    else:
        remedy = (
            "tuned-adm profile NAME, with the one that nova-perfvm host config says"
        )
        yield warned("profile", expected, shown, _PATH, remedy)


CHECK = Check(90, "hypervisor.tuned", "tuned has a profile for hypervisors", find)
