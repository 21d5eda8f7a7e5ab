# SPDX-License-Identifier: Apache-2.0
"""Whether the files of a certificate are about the same VMs, host and hour.

Evidence of different machines would add up to a promise that nobody keeps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.bench.busy_vms import IDLE_BELOW
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed import cpu_flags, cpus
from nova_perfvm.measure.observed import domains as observed
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.prove import conditions, promise
from nova_perfvm.measure.prove.inputs import RUN, Guest, Inputs, cpu_models
from nova_perfvm.measure.prove.rule import equal, of_guests, shown
from nova_perfvm.printable import number_of

_KERNEL: Final = "/proc/sys/kernel/osrelease"
_CPUINFO: Final = "/proc/cpuinfo"
_SAMPLES: Final = "--samples"
_BENCH: Final = "nova-perfvm bench run, on this host and in these VMs"
_RESIZE: Final = "openstack server resize"


def _on_host(inputs: Inputs) -> Iterator[Finding]:
    """Look for the VM that each guest is."""
    host = inputs.host.collected.hostname
    for guest in inputs.guests:
        domain = guest.domain
        yield judged(
            guest.name,
            f"one of the {len(inputs.host.domains)} VMs that run on {host}",
            f"{domain.name} ({domain.uuid})" if domain else f"none, by {guest.how}",
            f"{guest.how}; {observed.LIST}",
            holds=domain is not None,
            otherwise=Level.FAILURE if guest.known else Level.UNKNOWN,
            remedy="name what guest collect has written, as root, in this host's VMs",
        )


def _every_vm(inputs: Inputs) -> Iterator[Finding]:
    """Look that each VM of the flavor was looked into, once, and that all are there."""
    times = Counter(guest.domain.uuid for guest in inputs.guests if guest.domain)
    for domain in inputs.domains:
        yield judged(
            domain.name,
            "1 file of this VM",
            number_of(times[domain.uuid], "file"),
            f"{domain.source}; --guest-collect",
            holds=times[domain.uuid] == 1,
            otherwise=Level.FAILURE if times[domain.uuid] else Level.UNKNOWN,
            remedy="name each VM of the flavor once by --guest-collect",
        )
    yield judged(
        inputs.flavor.name,
        "a VM of the flavor",
        f"{len(inputs.domains)} of {number_of(len(inputs.host.domains), 'VM')}",
        f"{observed.LIST}; virsh -r dumpxml",
        holds=bool(inputs.domains),
        remedy="collect on a host where such VMs run",
    )
    alike = sum(inputs.host.class_of(d) == inputs.vm_class for d in inputs.host.domains)
    if (most := inputs.vm_class.max_per_host) is not None:
        yield shown(
            "VMs of the class",
            f"as many as may be on a host, {most}, as they cost each other something",
            str(alike),
            observed.LIST,
            holds=alike >= most,
            remedy="boot the others, too",
        )


@of_guests
def _flavor(inputs: Inputs, guest: Guest, domain: Domain) -> Iterator[Finding]:
    """Look at the flavor that Nova has noted in the domain, and at its class."""
    if domain.nova is None:
        raise NotReadError(domain.source, "Nova has noted no flavor in its XML")
    vm_class = inputs.host.class_of(domain)
    yield equal(
        guest.name,
        f"flavor {inputs.flavor.name} of class {inputs.vm_class.name}",
        f"flavor {domain.nova.flavor} of class {vm_class.name if vm_class else 'none'}",
        domain.source,
        f"certify the flavor that it has; or {_RESIZE}",
    )


@of_guests
def _vcpus(inputs: Inputs, guest: Guest, domain: Domain) -> Iterator[Finding]:
    """Compare the vCPUs of flavor, libvirt and guest."""
    vcpus = inputs.flavor.vcpus
    inside = len(cpus.online(guest.collected).numbers)
    yield equal(
        guest.name,
        f"{vcpus} for libvirt, {vcpus} in the guest",
        f"{domain.vcpus} for libvirt, {inside} in the guest",
        f"{domain.source}; {cpus.CPU}/online",
        f"{_RESIZE} --flavor {inputs.flavor.name} {domain.uuid}, or bring its CPUs "
        "online",
    )


@of_guests
def _cpu_flags(inputs: Inputs, guest: Guest, _domain: Domain) -> Iterator[Finding]:
    """Compare the flags of each guest's CPUs with its host's."""
    host = inputs.host.collected
    if cpu_flags.is_arm(host):
        reason = "KVM knows no CPU but the host's there"
        cause = Cause.HARDWARE_DECIDES
        yield skipped(guest.name, reason, cpu_flags.PATH, cause=cause)
        return
    lacks = cpu_flags.read(host) - cpu_flags.read(guest.collected)
    needed, newer = lacks & cpu_flags.NEEDED, lacks & cpu_flags.NEWER
    listed = ", ".join(sorted(needed) + sorted(newer))
    yield judged(
        guest.name,
        "each flag that the host's CPUs have, and programs use",
        f"lacks {listed}" if listed else "it has them",
        f"{cpu_flags.PATH} of the guest and of {host.hostname}",
        holds=not listed,
        otherwise=Level.FAILURE if needed else Level.WARNING,
        remedy="[libvirt]cpu_mode = host-passthrough or host-model in nova.conf of the "
        "host, no cpu_models; then openstack server reboot --hard. If it stays so, "
        "look at clearcpuid and the like on the guest's command line",
    )


@of_guests
def _memory(inputs: Inputs, guest: Guest, domain: Domain) -> Iterator[Finding]:
    """Compare the memory of flavor and libvirt."""
    yield equal(
        guest.name,
        f"{inputs.flavor.memory_mb * 1024} KiB",
        f"{domain.memory_kb} KiB",
        domain.source,
        f"{_RESIZE} --flavor {inputs.flavor.name} {domain.uuid}",
    )


def _same_time(inputs: Inputs) -> Iterator[Finding]:
    """Look how far apart the files are, and for how long nothing was measured."""
    run = inputs.noted
    times = [one.time for one in (inputs.host.collected, *inputs.collected)]
    apart_s: dict[str, float | None] = {
        "collected": (max(times) - min(times)).total_seconds(),
        "measured": max(
            (run.begun - min(times)).total_seconds(),
            (max(times) - run.ended).total_seconds(),
            0.0,
        ),
        # A run that was gone on with for weeks has begun before and ended after them.
        "run": run.idle_s(run.steps),
    }
    for name in sorted({step.round for step in run.steps if step.counts}):
        steps = [step for step in run.steps if step.round == name]
        apart_s[f"round {name}"] = run.idle_s(steps)
    for name, seconds in apart_s.items():
        yield shown(
            name,
            f"at most {inputs.within_s / 60:g} minutes apart, steps left out: nobody "
            "can tell what changed between (--within)",
            "not noted" if seconds is None else f"{seconds / 60:.0f} minutes",
            f"taken_at of what was collected; started_at and took_s of steps, {RUN}",
            holds=seconds is not None and seconds <= inputs.within_s,
            remedy="collect on the host and in its VMs, and measure, within that time",
        )


def _measured_here(inputs: Inputs) -> Iterator[Finding]:
    """Look whether the host and the VMs are those that were measured."""
    host = inputs.host.collected
    baselines = [t for t in inputs.noted.targets if t.kind == "host"]
    names = {target.hostname for target in baselines}
    yield judged(
        "host",
        f"a host like {host.hostname}" if inputs.elsewhere else host.hostname,
        ", ".join(sorted(names)) or "none",
        f"{RUN}; hostname of --host-collect",
        holds=bool(names) if inputs.elsewhere else names == {host.hostname},
        remedy=_BENCH,
    )
    yield from _alike(inputs, "host", host, {target.who for target in baselines})
    others = {t.who for t in inputs.noted.targets if t.kind == "guest"}
    for guest in inputs.guests:
        target = inputs.target_of(guest)
        if target is None:
            reason = f"no target of the samples, or several, have the name {guest.name}"
            yield skipped(guest.name, reason, RUN)
            continue
        others.discard(target.who)
        yield from _alike(inputs, guest.name, guest.collected, {target.who})
    for who in sorted(others):
        yield skipped(who, "it was measured, and no --guest-collect is of it", RUN)


def _alike(
    inputs: Inputs, name: str, collected: Collected, who: set[str]
) -> Iterator[Finding]:
    """Compare the kernel and the CPU that were measured with those collected."""
    machines = [m.machine for m in inputs.samples.measurements if m.who in who]
    kernel = collected.files.get(_KERNEL, "").strip()
    models = cpu_models(collected)
    for label, place, seen, measured in (
        ("kernel", _KERNEL, {kernel}, {m.kernel for m in machines}),
        ("CPU", _CPUINFO, models, {m.cpu_model for m in machines}),
    ):
        texts = [", ".join(sorted(filter(None, of))) for of in (seen, measured)]
        subject, source = f"{name}: {label}", f"{_SAMPLES}; {place}"
        if all(texts):
            yield equal(subject, texts[0], texts[1], source, _BENCH)
        else:
            yield skipped(subject, "it is not told on both sides", source)


def _baseline_alone(inputs: Inputs) -> Iterator[Finding]:
    """Look whether VMs were busy while their host was measured."""
    measured = inputs.samples.measurements
    for who in sorted({m.who for m in measured if m.machine.kind == "host"}):
        found = inputs.noted.beside.get(who)
        yield shown(
            who,
            f"at most {IDLE_BELOW:.0%} of a CPU for any VM beside it",
            (found.doubt or f"at most: {found.busiest}") if found else "not recorded",
            f"beside, in steps of the {RUN}",
            holds=bool(found and found.busiest and not found.doubt),
            remedy="leave them idle, or stop them, meanwhile",
        )


def _measured(inputs: Inputs) -> Iterator[Finding]:
    """Look that each VM has every figure that the verdict rests on."""
    betters = {m.metric: m.better for m in inputs.samples.measurements}
    needed = [one for one in promise.ENDPOINTS if one.needed(inputs.vm_class)]
    for guest in inputs.guests:
        target = inputs.target_of(guest)
        own = [
            group
            for group, rounds in inputs.measured_groups.items()
            if target and any(target.who in values for values in rounds.values())
        ]
        for endpoint in needed:
            found = [g for g in own if endpoint.is_of(g.metric, betters[g.metric])]
            good = [g for g in found if inputs.is_primary(g, endpoint.better)]
            threads = number_of(inputs.flavor.vcpus, "thread")
            yield shown(
                f"{guest.name}: {endpoint.name}",
                f"measured{f' with {threads}' if endpoint.each_vcpu else ''} in "
                f"{number_of(inputs.together, 'VM')} at once, as {endpoint.why}",
                "; ".join(map(str, good or found)) or "not at all",
                _SAMPLES,
                holds=bool(good),
            )
    for failure in inputs.run.failures if inputs.run else ():
        yield skipped("failures", f"it could not be measured: {failure}", RUN)


CHECKS: Final = (
    Check(10, "certify.guest_on_host", "Each guest is a VM of the host", _on_host),
    Check(20, "certify.every_vm", "Each VM of the flavor was looked into", _every_vm),
    Check(30, "certify.flavor", "Each guest has the flavor", _flavor),
    Check(40, "certify.vcpus", "Each guest has the flavor's vCPUs", _vcpus),
    Check(45, "certify.cpu_flags", "Guests have their host's CPU flags", _cpu_flags),
    Check(50, "certify.memory", "Each guest has the flavor's memory", _memory),
    Check(60, "certify.same_time", "All was looked at within one time", _same_time),
    *conditions.CHECKS,
    Check(
        70, "certify.measured_here", "Measured were this host and VMs", _measured_here
    ),
    Check(
        75, "certify.baseline_alone", "VMs were idle beside the host", _baseline_alone
    ),
    Check(80, "certify.measured", "What is promised was measured", _measured),
)
