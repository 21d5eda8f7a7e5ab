# SPDX-License-Identifier: Apache-2.0
"""Settings of the host's kernel, clock and tuned that cost pinned VMs.

Without a stable TSC the kernel falls back to a device, and then kvm-clock is a system
call in guests (Linux, arch/x86/kvm/x86.c: stable only in vclock mode TSC).
"""

from typing import Final

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Seen, check_of
from nova_perfvm.measure.checks.guest.clocksource import CURRENT, FAST
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import NotReadError

_KSM: Final = "/sys/kernel/mm/ksm"
_NUMA_BALANCING: Final = "/proc/sys/kernel/numa_balancing"
_TUNED: Final = "/etc/tuned/active_profile"
_GOOD: Final = """
cpu-partitioning virtual-host realtime-virtual-host latency-performance
network-latency throughput-performance network-throughput
"""
# Profiles shipped with tuned that save power, or are for other machines.
_BAD: Final = """
balanced balanced-battery powersave desktop desktop-powersave virtual-guest
realtime-virtual-guest laptop-battery-powersave laptop-ac-powersave server-powersave
default spindown-disk
"""


@check_of(
    87,
    "hypervisor.clocksource",
    source=CURRENT,
    remedy="dmesg says why the TSC was given up; tsc=reliable on the kernel's "
    "command line where firmware is known to be good",
)
def clocksource(host: HostSubject) -> Seen:
    """Guests may read the host's clock: its source is tsc."""
    current = host.collected.text(CURRENT).strip()
    yield Level.OK if current in FAST else Level.FAILURE, current or "none"


@check_of(
    90,
    "hypervisor.tuned",
    source=_TUNED,
    remedy="tuned-adm profile NAME, with the one that nova-perfvm host config says",
)
def tuned(host: HostSubject) -> Seen:
    """Tuned has a profile for hypervisors."""
    profiles = {*host.collected.text(_TUNED).split()}
    shown = " ".join(sorted(profiles)) or "none"
    bad, good = profiles & {*_BAD.split()}, profiles & {*_GOOD.split()}
    if profiles and not bad and not good:
        reason = f"{shown} is no profile of tuned's: check its include= line"
        raise NotReadError(_TUNED, reason)
    yield Level.OK if good and not bad else Level.WARNING, shown


@check_of(
    95,
    "hypervisor.ksm",
    source=f"{_KSM}/run, pages_sharing, merge_across_nodes",
    remedy=f"systemctl disable --now ksmtuned ksm; echo 2 > {_KSM}/run takes apart "
    "what was merged",
)
def ksm(host: HostSubject) -> Seen:
    """KSM merges no pages of pinned VMs."""
    if not host.cpu_sets.dedicated:
        return
    if "no such file" in host.collected.unread.get(f"{_KSM}/run", ""):
        yield Level.OK, "the kernel has none"
        return
    run = host.collected.text(f"{_KSM}/run").strip()
    across, merged = (
        host.collected.files.get(f"{_KSM}/{name}", "").strip()
        for name in ("merge_across_nodes", "pages_sharing")
    )
    if run == "0" and merged not in {"", "0"}:
        yield Level.UNKNOWN, f"KSM is stopped, but {merged} pages are still merged"
    elif run in {"0", "2"}:
        yield Level.OK, f"it does not run ({run})"
    elif across == "1" and len(host.nodes) > 1:
        # A merged page is remote memory for the VM on the other node.
        yield Level.FAILURE, f"it runs over nodes, pages merged: {merged}"
    else:
        yield Level.WARNING, f"it runs within nodes, pages merged: {merged}"


@check_of(
    100,
    "hypervisor.numa_balancing",
    source=_NUMA_BALANCING,
    remedy="sysctl kernel.numa_balancing=0, and numa_balancing=disable on the "
    "kernel's command line: pinned VMs gain nothing from its page faults",
)
def numa_balancing(host: HostSubject) -> Seen:
    """NUMA balancing is off (0)."""
    if host.cpu_sets.dedicated:
        value = host.collected.text(_NUMA_BALANCING).strip()
        yield Level.OK if value == "0" else Level.WARNING, value or "nothing"
