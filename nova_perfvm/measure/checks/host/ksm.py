# SPDX-License-Identifier: Apache-2.0
"""The kernel does not merge pages of pinned VMs."""

from collections.abc import Iterator

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import Check, judged, passed, skipped
from nova_perfvm.measure.checks.host_subject import HostSubject

_KSM = "/sys/kernel/mm/ksm"


def find(subject: HostSubject) -> Iterator[Finding]:
    """Look whether it runs, and whether over nodes."""
    if not subject.cpu_sets.dedicated:
        return
    path = f"{_KSM}/run"
    run = subject.collected.text(path).strip()
    expected = "0: it does not run"
    nodes = subject.collected.files.get(f"{_KSM}/merge_across_nodes", "").strip()
    shared = subject.collected.files.get(f"{_KSM}/pages_sharing", "").strip()
    if run == "0" and shared not in {"", "0"}:
        reason = (
            f"it does not run, but has left {shared} pages merged, nobody knows whose: "
            f"echo 2 > {path} takes them apart"
        )
        yield skipped("KSM", reason, f"{path}; {_KSM}/pages_sharing")
        return
    if run in {"0", "2"}:
        yield passed("KSM", expected, run, path)
        return
    across = nodes == "1" and len(subject.nodes) > 1
    yield judged(
        "KSM",
        expected,
        f"1: it runs, {'over nodes' if across else 'within nodes'}, and has merged "
        f"{shared or 'an unknown number of'} pages",
        f"{path}; {_KSM}/merge_across_nodes",
        holds=False,
        # A page that two VMs share is remote for one of them.
        otherwise=Level.FAILURE if across else Level.WARNING,
        remedy=f"systemctl disable --now ksmtuned ksm; echo 2 > {path}, which takes "
        "apart what was merged",
    )


CHECK = Check(95, "hypervisor.ksm", "The kernel merges no pages of pinned VMs", find)
