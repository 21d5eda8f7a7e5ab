# SPDX-License-Identifier: Apache-2.0
"""Whether what was collected and measured is of the same VMs, host and hour.

Evidence of different machines would add up to a promise that nobody keeps.
"""

from __future__ import annotations

import re
from collections import Counter
from operator import attrgetter
from typing import Final

from nova_perfvm.findings import Level
from nova_perfvm.measure.bench.busy_vms import IDLE_BELOW, NOTED_ABOVE
from nova_perfvm.measure.checks.check import Cause, Seen, check_each, check_of
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import cpu_flags, cpus
from nova_perfvm.measure.observed import domains as observed
from nova_perfvm.measure.prove import promise
from nova_perfvm.measure.prove.inputs import (
    RUN,
    WITHIN_S,
    CollectedMachine,
    Inputs,
    cpu_models,
)
from nova_perfvm.printable import number_of

_VMS: Final = attrgetter("vms")
_MACHINES: Final = attrgetter("machines")
_KERNEL: Final = "/proc/sys/kernel/osrelease"
_SAMPLES: Final = "measurements"
_MEMINFO: Final = "/proc/meminfo"
# The guest's kernel keeps: its image, a structure of 64 bytes for each page, and up to
# 1 GiB for kdump (crashkernel=).
_KERNELS_SHARE: Final = 0.05
_KERNELS_KB: Final = 2**20 + 2**18
_XML: Final = "{one.vm.source}"
_RESIZE: Final = "openstack server resize --flavor {of.flavor_word} {one.vm.uuid}"


@check_each(
    10,
    "proof.guest_on_host",
    attrgetter("guests"),
    source=f"{{one.how}}; {observed.LIST}",
    remedy="openstack perfvm prove --servers names VMs of this host; log in as root",
)
def _on_host(inputs: Inputs, guest: CollectedMachine) -> Seen:
    """Each guest is a VM of the host."""
    vms, domain = len(inputs.host.domains), guest.domain
    if domain:
        yield Level.OK, f"{domain.name} ({domain.uuid})"
        return
    host = inputs.host.collected.hostname
    level = Level.FAILURE if guest.known else Level.UNKNOWN
    yield level, f"no VM of {vms} on {host}, by {guest.how}"


@check_of(
    20,
    "proof.every_vm",
    source=f"{observed.LIST}; virsh -r dumpxml",
    remedy="run as many VMs as the class allows on a host, and name all of them by "
    "--servers",
)
def _every_vm(inputs: Inputs) -> Seen:
    """Each VM of the flavor was looked into."""
    times = Counter(guest.domain.uuid for guest in inputs.guests if guest.domain)
    for domain in inputs.domains:
        level = {0: Level.UNKNOWN, 1: Level.OK}.get(times[domain.uuid], Level.FAILURE)
        yield level, f"{domain.name}: {number_of(times[domain.uuid], 'file')}"
    if not inputs.domains:
        vms = number_of(len(inputs.host.domains), "VM")
        yield Level.FAILURE, f"none of {vms} is of {inputs.flavor.name}"
    most = inputs.vm_class.max_per_host
    alike = sum(inputs.host.class_of(d) == inputs.vm_class for d in inputs.host.domains)
    if most is not None and alike < most:
        words = f"{alike} of the class, where {most} may be and cost each other more"
        yield Level.UNKNOWN, words


@check_each(
    30,
    "proof.flavor",
    _VMS,
    source=_XML,
    remedy=f"prove the flavor that it has; or {_RESIZE}",
)
def _flavor(inputs: Inputs, guest: CollectedMachine) -> Seen:
    """Each guest has the flavor."""
    domain = guest.vm
    if domain.nova is None:
        raise NotReadError(domain.source, "Nova has noted no flavor in its XML")
    vm_class = inputs.host.class_of(domain)
    found = domain.nova.flavor, vm_class.name if vm_class else "none"
    wanted = inputs.flavor.name, inputs.vm_class.name
    level = Level.OK if found == wanted else Level.FAILURE
    yield level, "{} of class {}, to be {} of {}".format(*found, *wanted)


@check_each(
    40,
    "proof.vcpus",
    _VMS,
    source=f"{_XML}; {cpus.CPU}/online",
    remedy=f"{_RESIZE}, or bring its CPUs online",
)
def _vcpus(inputs: Inputs, guest: CollectedMachine) -> Seen:
    """Each guest has the flavor's vCPUs."""
    wanted, vcpus = inputs.flavor.vcpus, guest.vm.vcpus
    inside = len(cpus.online(guest.collected))
    level = Level.OK if wanted == vcpus == inside else Level.FAILURE
    yield level, f"{vcpus} for libvirt, {inside} in the guest, of {wanted}"


@check_each(
    45,
    "proof.cpu_flags",
    _VMS,
    source=f"{cpu_flags.PATH} of the guest and of its host",
    remedy="[libvirt]cpu_mode = host-passthrough or host-model in nova.conf of the "
    "host, no cpu_models; then openstack server reboot --hard. If it stays so, "
    "look at clearcpuid and the like on the guest's command line",
)
def _cpu_flags(inputs: Inputs, guest: CollectedMachine) -> Seen:
    """Guests have their host's CPU flags."""
    host = inputs.host.collected
    if cpu_flags.is_arm(host):
        yield Cause.NOTHING_TO_JUDGE, "KVM knows no CPU but the host's there"
        return
    lacks = cpu_flags.read(host) - cpu_flags.read(guest.collected)
    needed, newer = lacks & cpu_flags.NEEDED, lacks & cpu_flags.NEWER
    if listed := ", ".join(sorted(needed) + sorted(newer)):
        yield Level.FAILURE if needed else Level.WARNING, f"lacks {listed}"
    else:
        yield Level.OK, "no CPU flag of the host is missing"


@check_each(50, "proof.memory", _VMS, source=f"{_XML}; {_MEMINFO}", remedy=_RESIZE)
def _memory(inputs: Inputs, guest: CollectedMachine) -> Seen:
    """Each guest has the flavor's memory."""
    wanted_kb, memory_kb = inputs.flavor.memory_mb * 1024, guest.vm.memory_kb
    level = Level.OK if memory_kb == wanted_kb else Level.FAILURE
    yield level, f"{memory_kb} of {wanted_kb} KiB"
    match = re.search(
        r"^MemTotal: *(\d+) kB$", guest.collected.text(_MEMINFO), re.MULTILINE
    )
    if match is None:
        raise NotReadError(_MEMINFO, "it has no MemTotal")
    inside_kb = int(match[1])
    few = wanted_kb - inside_kb > max(_KERNELS_SHARE * wanted_kb, _KERNELS_KB)
    shown = f"{inside_kb} of {wanted_kb} KiB for the guest's programs and caches"
    yield Level.FAILURE if few else Level.OK, shown


@check_of(
    60,
    "proof.same_time",
    source=f"taken_at of what was collected; started_at and took_s of steps, {RUN}",
    remedy="collect on the host and in its VMs, and measure, within an hour",
)
def _same_time(inputs: Inputs) -> Seen:
    """All was collected and measured at about the same time."""
    run = inputs.run
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
        if seconds is None:
            yield Level.UNKNOWN, f"{name}: not noted"
        elif seconds > WITHIN_S:
            most = f"more than {WITHIN_S / 60:g}: who knows what changed"
            yield Level.UNKNOWN, f"{name}: {seconds / 60:.0f} minutes apart, {most}"
        else:
            yield Level.OK, f"{name}: {seconds / 60:.0f} minutes apart"


@check_each(
    70,
    "proof.measured_here",
    _MACHINES,
    source=f"{RUN}; hostname, {_KERNEL} and {cpu_flags.PATH} of what was collected",
    remedy="openstack perfvm prove, on this host with these VMs",
)
def _measured_here(inputs: Inputs, machine: CollectedMachine) -> Seen:
    """Measurements were taken on this host and its VMs."""
    if machine.is_host:
        yield from _same_machines(inputs)
    elif not machine.who:
        reason = f"no target, or several, have the name {machine.name}"
        raise NotReadError(RUN, reason)
    # Kernel and CPU of the measurements must be those of the collected files.
    machines = [m.machine for m in inputs.samples.measurements if m.who in machine.who]
    kernel = machine.collected.files.get(_KERNEL, "").strip()
    # A target tells the model of its first CPU; a host may have several.
    for label, told, measured in (
        ("kernel", {kernel}, {m.kernel for m in machines}),
        ("CPU", cpu_models(machine.collected), {m.cpu_model for m in machines}),
    ):
        now, then = (set(filter(None, of)) for of in (told, measured))
        if now and then:
            level = Level.OK if then <= now else Level.FAILURE
            shown = (", ".join(sorted(of)) for of in (then, now))
            yield level, "{} {} measured, {} collected".format(label, *shown)
        else:
            yield NotReadError(_SAMPLES, f"its {label} is not told on both sides")


def _same_machines(inputs: Inputs) -> Seen:
    """Look whether the host was measured, and no VM that was not looked into."""
    host, seen = inputs.host.collected.hostname, inputs.run.seen
    names = {one.hostname for one in seen if one.kind == "host"}
    measured = ", ".join(sorted(names)) or "none"
    level = Level.OK if names == {host} else Level.FAILURE
    yield level, f"measured {measured}, for {host}"
    looked_into = {who for machine in inputs.machines for who in machine.who}
    for who in sorted({one.name for one in seen} - looked_into):
        yield NotReadError(RUN, f"{who} was measured, and nothing was collected there")


@check_of(
    75,
    "proof.baseline_alone",
    source=f"beside, in steps of the {RUN}",
    remedy="stop meanwhile whatever runs beside the benchmark, VMs too",
)
def _baseline_alone(inputs: Inputs) -> Seen:
    """Nobody ran beside the benchmark on the host."""
    measured = inputs.samples.measurements
    for who in sorted({m.who for m in measured if m.machine.kind == "host"}):
        found = inputs.run.beside.get(who)
        if found and found.busiest and not found.doubt:
            yield Level.OK, f"{who}: at most: {found.busiest}"
        else:
            doubt = found.doubt if found else "not recorded"
            words = f"{who}: {doubt}; {IDLE_BELOW:.0%} of a CPU is idle"
            yield Level.UNKNOWN, words
        if found and (others := found.loudest) and others.share > NOTED_ABOVE:
            yield Level.WARNING, f"{who}: {others}"


@check_each(80, "proof.measured", _MACHINES, source=_SAMPLES, remedy="")
def _measured(inputs: Inputs, machine: CollectedMachine) -> Seen:
    """Each promised figure was measured."""
    if machine.is_host:
        for failure in inputs.run.failures:
            yield NotReadError(RUN, f"it could not be measured: {failure}")
        return
    betters = {m.metric: m.better for m in inputs.samples.measurements}
    own = [
        group
        for group, rounds in inputs.measured_groups.items()
        if any(machine.who & values.keys() for values in rounds.values())
    ]
    for endpoint in promise.ENDPOINTS:
        if not endpoint.needed(inputs.vm_class):
            continue
        found = [g for g in own if endpoint.is_of(g.metric, betters[g.metric])]
        good = [g for g in found if inputs.is_primary(g, endpoint.better)]
        if good:
            yield Level.OK, f"{endpoint.name}: {'; '.join(map(str, good))}"
            continue
        threads = number_of(inputs.flavor.vcpus, "thread")
        how = f"with {threads} in " if endpoint.each_vcpu else "in "
        how += f"{number_of(inputs.together, 'VM')} at once"
        only = "; ".join(map(str, found)) or "nothing"
        yield Level.UNKNOWN, f"{endpoint.name}: {only}, where it is needed {how}"
