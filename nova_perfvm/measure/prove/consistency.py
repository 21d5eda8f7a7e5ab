# SPDX-License-Identifier: Apache-2.0
"""Whether the files of a certificate are about the same VMs, host and hour.

Evidence of different machines would add up to a promise that nobody keeps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations
from typing import Final

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.bench.busy_vms import IDLE_BELOW
from nova_perfvm.measure.checks.check import Check, failed, judged, skipped
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed import domains as observed
from nova_perfvm.measure.observed.cpus import CPU
from nova_perfvm.measure.prove import conditions, cpu_flags, promise
from nova_perfvm.measure.prove.inputs import UUID, Guest, Inputs, cpu_models, vcpus
from nova_perfvm.measure.prove.promise import Endpoint
from nova_perfvm.measure.prove.run_notes import RunNotes, StepNotes
from nova_perfvm.printable import number_of

_KERNEL: Final = "/proc/sys/kernel/osrelease"
_COLLECT: Final = "collect on the host and in its VMs, and measure, within that time"
_STEPS: Final = "beside, in steps of the run of --samples"
_BENCH: Final = "nova-perfvm bench run, on this host and in these VMs"


def _on_host(inputs: Inputs) -> Iterator[Finding]:
    """Look for the VM that each guest is."""
    host = inputs.host.collected.hostname
    for guest in inputs.guests:
        if not guest.known:
            yield skipped(guest.name, guest.how, UUID)
            continue
        yield judged(
            guest.name,
            f"one of the VMs that run on {host}",
            f"{guest.domain.name} ({guest.domain.uuid})"
            if guest.domain
            else f"none of the {len(inputs.host.domains)} has its UUID",
            f"{guest.how}; {observed.LIST}",
            holds=guest.domain is not None,
            remedy="name what guest collect has written in the VMs of this host",
        )


def _every_vm(inputs: Inputs) -> Iterator[Finding]:
    """Look that each VM of the flavor was looked into, once."""
    found = [g.domain.uuid for g in inputs.guests if g.domain]
    for domain in inputs.domains:
        times = found.count(domain.uuid)
        if not times:
            reason = "nobody looked into it: add --guest-collect FILE of this VM"
            yield skipped(domain.name, reason, domain.source)
            continue
        yield judged(
            domain.name,
            "one file of this VM",
            f"{number_of(times, 'file')}",
            f"{domain.source}; --guest-collect",
            holds=times == 1,
            remedy="name each VM once",
        )
    most = inputs.vm_class.max_per_host
    alike = [
        d for d in inputs.host.domains if inputs.host.class_of(d) == inputs.vm_class
    ]
    if most is not None and len(alike) < most:
        reason = (
            f"{number_of(len(alike), 'VM')} of the class, and the policy allows {most} "
            "on a host: what they cost each other is not known; boot the others, too"
        )
        yield skipped("VMs of the class", reason, observed.LIST)
    if not inputs.domains:
        yield failed(
            inputs.flavor.name,
            "a VM of the flavor",
            f"none of {number_of(len(inputs.host.domains), 'VM')} that run has it",
            f"{observed.LIST}; virsh -r dumpxml",
            "collect on a host where such VMs run",
        )


def _flavor(inputs: Inputs) -> Iterator[Finding]:
    """Look at the flavor that Nova has noted in the domain, and at its class."""
    for guest in inputs.guests:
        domain = guest.domain
        if domain is None:
            continue
        if domain.nova is None:
            reason = "Nova has noted no flavor in its XML"
            yield skipped(guest.name, reason, domain.source)
            continue
        vm_class = inputs.host.class_of(domain)
        name = vm_class.name if vm_class else "none"
        yield judged(
            guest.name,
            f"flavor {inputs.flavor.name} of class {inputs.vm_class.name}",
            f"flavor {domain.nova.flavor} of class {name}",
            domain.source,
            holds=domain.nova.flavor == inputs.flavor.name
            and vm_class == inputs.vm_class,
            remedy="certify the flavor that it has; or openstack server resize",
        )


def _vcpus(inputs: Inputs) -> Iterator[Finding]:
    """Compare the vCPUs of flavor, libvirt and guest."""
    for guest in inputs.guests:
        domain = guest.domain
        if domain is None:
            continue
        try:
            inside = vcpus(guest.collected)
        except NotReadError as exc:
            yield skipped(guest.name, exc.reason, exc.place)
            continue
        yield judged(
            guest.name,
            f"{inputs.flavor.vcpus} for libvirt and in the guest",
            f"{domain.vcpus} for libvirt, {inside} in the guest",
            f"{domain.source}; {CPU}/online",
            holds=domain.vcpus == inside == inputs.flavor.vcpus,
            remedy=f"openstack server resize --flavor {inputs.flavor.name} "
            f"{domain.uuid}, or bring its CPUs online",
        )


def _memory(inputs: Inputs) -> Iterator[Finding]:
    """Compare the memory of flavor and libvirt."""
    for guest in inputs.guests:
        domain = guest.domain
        if domain is None:
            continue
        yield judged(
            guest.name,
            f"{inputs.flavor.memory_mb} MiB",
            f"{domain.memory_kb / 1024:g} MiB",
            domain.source,
            holds=domain.memory_kb == inputs.flavor.memory_mb * 1024,
            remedy=f"openstack server resize --flavor {inputs.flavor.name} "
            f"{domain.uuid}",
        )


def _same_time(inputs: Inputs) -> Iterator[Finding]:
    """Look how far apart the files are in time."""
    seen = [inputs.host.collected, *inputs.collected]
    limit = f"at most {inputs.within_s / 60:g} minutes apart"
    apart = max(
        (abs((a.time - b.time).total_seconds()) for a, b in combinations(seen, 2)),
        default=0.0,
    )
    source = "taken_at of what was collected"
    yield _near(inputs, "collected", limit, apart, source)
    if inputs.run is None:
        reason = "when was measured is not told: let bench run measure"
        yield skipped("measured", reason, "run of --samples")
        return
    run = inputs.run
    far = max(
        max((run.begun - one.time), (one.time - run.ended)).total_seconds()
        for one in seen
    )
    source = f"{source}; run of --samples"
    yield _near(inputs, "measured", limit, max(far, 0.0), source)
    # A run that was gone on with for weeks has begun before and ended after them.
    yield _idle(inputs, run, "run", run.steps)
    rounds = {step.round for step in run.steps if step.counts}
    for number in sorted(rounds):
        steps = [step for step in run.steps if step.round == number]
        found = _idle(inputs, run, f"round {number}", steps)
        if found.level is Level.UNKNOWN:
            yield found


def _idle(
    inputs: Inputs, run: RunNotes, name: str, steps: Collection[StepNotes]
) -> Finding:
    """Judge how long nothing was measured between steps."""
    source = "started_at and took_s of steps, run of --samples"
    idle_s = run.idle_s(steps)
    if idle_s is None:
        return skipped(name, "how long its steps took is not noted", source)
    allowed = f"at most {inputs.within_s / 60:g} minutes beside the steps"
    if idle_s > inputs.within_s:
        reason = f"it was interrupted for {idle_s / 60:.0f} minutes, allowed are"
        return skipped(name, f"{reason} {allowed}: begin a new one", source)
    shown = f"{idle_s / 60:.0f} minutes beside {number_of(len(steps), 'step')}"
    return judged(name, allowed, shown, source, holds=True, remedy="")


def _near(
    inputs: Inputs, name: str, limit: str, apart_s: float, source: str
) -> Finding:
    shown = f"{apart_s / 60:.0f} minutes apart"
    if apart_s > inputs.within_s:
        reason = f"{shown}, allowed are {limit}: nobody can tell what changed between"
        return skipped(name, f"{reason} (--within)", source)
    return judged(name, limit, shown, source, holds=True, remedy=_COLLECT)


def _measured_here(inputs: Inputs) -> Iterator[Finding]:
    """Look whether the host and the VMs are those that were measured."""
    if inputs.run is None:
        reason = "who was measured is not told: let bench run measure"
        yield skipped("", reason, "run of --samples")
        return
    host = inputs.host.collected
    names = {t.hostname for t in inputs.run.targets if t.kind == "host"}
    yield judged(
        "host",
        f"a host like {host.hostname}" if inputs.elsewhere else host.hostname,
        ", ".join(sorted(names)) or "none",
        "run of --samples; hostname of --host-collect",
        holds=bool(names) if inputs.elsewhere else names == {host.hostname},
        remedy=_BENCH,
    )
    yield from _alike(
        inputs, "host", host, {t.who for t in inputs.run.targets if t.kind == "host"}
    )
    taken = set()
    for guest in inputs.guests:
        target = inputs.target_of(guest)
        if target is None:
            reason = f"no target of the samples, or several, have the name {guest.name}"
            yield skipped(guest.name, reason, "run of --samples")
            continue
        taken.add(target.who)
        yield from _alike(inputs, guest.name, guest.collected, {target.who})
    others = {t.who for t in inputs.run.targets if t.kind == "guest"} - taken
    if others:
        yield skipped(
            "others",
            f"{', '.join(sorted(others))} were measured, too, and none of the files of "
            "--guest-collect is of them",
            "run of --samples",
        )


def _baseline_alone(inputs: Inputs) -> Iterator[Finding]:
    """Look whether VMs were busy while their host was measured."""
    beside = inputs.run.beside if inputs.run else {}
    measured = inputs.samples.measurements
    for who in sorted({m.who for m in measured if m.machine.kind == "host"}):
        found = beside.get(who)
        if found is None or found.busiest is None:
            reason = "what VMs did beside it was not recorded: let bench run measure"
            yield skipped(who, reason, _STEPS)
            continue
        if found.doubt:
            reason = f"{found.doubt}; leave them idle, or stop them, meanwhile"
            yield skipped(who, reason, _STEPS)
            continue
        yield judged(
            who,
            f"at most {IDLE_BELOW:.0%} of a CPU for any VM beside it",
            f"at most: {found.busiest}",
            _STEPS,
            holds=True,
            remedy=_BENCH,
        )


def _alike(
    inputs: Inputs, name: str, collected: Collected, who: set[str]
) -> Iterator[Finding]:
    """Compare the kernel and the CPU that were measured with those collected."""
    machines = [m.machine for m in inputs.samples.measurements if m.who in who]
    kernel = collected.files.get(_KERNEL, "").strip()
    for label, measured, seen, place in (
        ("kernel", {m.kernel for m in machines}, {kernel} - {""}, _KERNEL),
        (
            "CPU",
            {m.cpu_model for m in machines},
            cpu_models(collected),
            "/proc/cpuinfo",
        ),
    ):
        known = {one for one in measured if one is not None}
        if not known or not seen:
            reason = "it is not told on both sides"
            yield skipped(f"{name}: {label}", reason, f"{place}; --samples")
            continue
        yield judged(
            f"{name}: {label}",
            ", ".join(sorted(seen)),
            ", ".join(sorted(known)),
            f"--samples; {place}",
            holds=known == seen,
            remedy=_BENCH,
        )


def _measured(inputs: Inputs) -> Iterator[Finding]:
    """Look that each VM has every figure that the verdict rests on."""
    for guest in inputs.guests:
        target = inputs.target_of(guest)
        if target is None:
            yield skipped(guest.name, "it is not told which figures are its own")
            continue
        for endpoint in promise.ENDPOINTS:
            if endpoint.needed(inputs.vm_class):
                yield _has(inputs, guest, target.who, endpoint)
    for failure in inputs.run.failures if inputs.run else ():
        reason = f"it could not be measured: {failure}"
        yield skipped("failures", reason, "run of --samples")


def _has(inputs: Inputs, guest: Guest, who: str, endpoint: Endpoint) -> Finding:
    name = f"{guest.name}: {endpoint.name}"
    own = [m for m in inputs.samples.measurements if m.who == who]
    better = {m.metric: m.better for m in own}
    groups = [
        group
        for group, rounds in inputs.measured_groups.items()
        if any(who in values for values in rounds.values())
        and endpoint.is_of(group.metric, better[group.metric])
    ]
    good = {g.metric for g in groups if inputs.is_primary(g, endpoint.better)}
    threads = number_of(inputs.flavor.vcpus, "thread") if endpoint.each_vcpu else ""
    together = number_of(inputs.together, "VM")
    expected = f"measured{threads and ' with ' + threads} in {together} at once"
    if good:
        shown = ", ".join(sorted(good))
        return judged(name, expected, shown, "--samples", holds=True, remedy="")
    seen = "; ".join(map(str, groups))
    reason = f"{seen or 'not at all'}; it has to be {expected}, as {endpoint.why}"
    return skipped(name, reason, "--samples")


CHECKS: Final = (
    Check(10, "certify.guest_on_host", "Each guest is a VM of the host", _on_host),
    Check(20, "certify.every_vm", "Each VM of the flavor was looked into", _every_vm),
    Check(30, "certify.flavor", "Each guest has the flavor", _flavor),
    Check(40, "certify.vcpus", "Each guest has the flavor's vCPUs", _vcpus),
    cpu_flags.CHECK,
    Check(50, "certify.memory", "Each guest has the flavor's memory", _memory),
    Check(60, "certify.same_time", "All was looked at within one time", _same_time),
    *conditions.CHECKS,
    Check(
        70, "certify.measured_here", "Measured were this host and VMs", _measured_here
    ),
    Check(
        75,
        "certify.baseline_alone",
        "VMs were idle while the host was measured",
        _baseline_alone,
    ),
    Check(80, "certify.measured", "What is promised was measured", _measured),
)
