# SPDX-License-Identifier: Apache-2.0
"""What the kernel's command line isolates are the CPUs that VMs own.

Isolated CPUs that VMs share or that nobody owns are lost: nothing is balanced onto
them.  VMs whose CPUs are not all isolated run at different speeds.

jc's parser of the command line is not used: it splits as a shell does, and fails at
an apostrophe, which is a letter like any other to the kernel.
"""

from collections.abc import Iterator

from nova_perfvm import cpuset
from nova_perfvm.cpuset import format_cpus
from nova_perfvm.exceptions import CPUSetError
from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.checks.check import Check, failed, judged, skipped, warned
from nova_perfvm.measure.checks.host_subject import HostSubject, VMCPUSets
from nova_perfvm.measure.collect.collected import NotReadError

_PATH = "/proc/cmdline"
_FLAGS = ("nohz", "domain", "managed_irq")
_REMEDY = "take the arguments of nova-perfvm host config, and reboot the drained host"


def find(subject: HostSubject) -> Iterator[Finding]:
    """Compare isolcpus and nohz_full with the CPUs that VMs own."""
    sets = subject.cpu_sets
    words = subject.collected.text(_PATH).split()
    values = {
        name: value
        for name, _, value in (word.partition("=") for word in words)
        if name in {"isolcpus", "nohz_full"}
    }
    if "isolcpus" in values:
        yield from _floating(subject, *_isolcpus(values["isolcpus"]))
    if not sets.dedicated:
        return
    if "isolcpus" in values:
        flags, cpus = _isolcpus(values["isolcpus"])
        yield _compared(sets, f"isolcpus={values['isolcpus']}", cpus)
        if "domain" in flags and cpus & sets.dedicated:
            yield warned(
                "isolcpus: domain",
                "managed_irq only",
                f"isolcpus={values['isolcpus']}",
                _PATH,
                "QEMU's and vhost's threads of a VM all stay on one CPU where nothing "
                "is balanced, and its vCPU pays for all of them (hypervisor.vcpu_wait, "
                f"host_time): isolcpus=managed_irq,{format_cpus(sets.dedicated)}",
            )
    if "nohz_full" in values:
        value = values["nohz_full"]
        yield _compared(sets, f"nohz_full={value}", _parse(value))
    elif not subject.online.numbers - sets.dedicated:
        reason = "VMs own every CPU: the kernel's own work has to run on some of them"
        yield skipped("nohz_full", reason, _PATH, cause=Cause.VMS_OWN_ALL)
    elif not sets.whole:
        reason = "Nova's sets are not known: add --nova-conf or --snapshot"
        yield skipped("nohz_full", reason, sets.source, cause=Cause.NOVA_SETS_UNKNOWN)
    else:
        yield warned(
            "nohz_full",
            f"nohz_full={format_cpus(sets.dedicated)}",
            "not given: timer ticks interrupt vCPUs",
            _PATH,
            _REMEDY,
        )


def _floating(
    subject: HostSubject, flags: frozenset[str], cpus: frozenset[int]
) -> Iterator[Finding]:
    """Look for VMs without CPUs of their own where nothing is balanced."""
    for domain in subject.domains if "domain" in flags else ():
        many = subject.cpus_of(domain) & cpus
        if domain not in subject.pinned and len(many) > 1:
            yield failed(
                f"{domain.name}: isolcpus",
                "no floating vCPU on isolated CPUs",
                f"it may use CPUs {format_cpus(many)}, and all its vCPUs stay on one",
                f"{_PATH}; {domain.source}",
                _REMEDY,
            )


def _isolcpus(value: str) -> tuple[frozenset[str], frozenset[int]]:
    """Return the flags and the CPUs; without a flag it is domain."""
    parts = value.split(",")
    flags = frozenset(part for part in parts if part in _FLAGS)
    rest = ",".join(part for part in parts if part not in _FLAGS)
    return flags or frozenset({"domain"}), _parse(rest)


def _parse(text: str) -> frozenset[int]:
    try:
        return cpuset.parse(text)
    except CPUSetError as exc:
        raise NotReadError(_PATH, str(exc)) from exc


def _compared(sets: VMCPUSets, shown: str, cpus: frozenset[int]) -> Finding:
    shared = cpus & sets.shared
    left_out = sets.dedicated - cpus
    # Where Nova's set is not known VMs may come to own the others.
    beyond = cpus - sets.dedicated if sets.whole else shared
    parts = [
        f"{words} {format_cpus(found)}"
        for found, words in (
            (left_out, "leaves out"),
            (beyond, "has beside them"),
            (shared, "has of those that VMs share"),
        )
        if found
    ]
    return judged(
        shown.partition("=")[0],
        f"the CPUs that VMs own: {format_cpus(sets.dedicated)}",
        f"{shown}; {', '.join(parts)}" if parts else shown,
        f"{_PATH}; {sets.source}",
        holds=not parts,
        otherwise=Level.FAILURE if shared else Level.WARNING,
        remedy=_REMEDY,
    )


CHECK = Check(105, "hypervisor.isolation", "Isolated are the CPUs that VMs own", find)
