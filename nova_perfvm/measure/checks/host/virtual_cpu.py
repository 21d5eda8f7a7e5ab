# SPDX-License-Identifier: Apache-2.0
"""A pinned VM runs on KVM with the host's CPU, as QEMU's command line has it, too.

libvirt shows host-model as custom, with the model that it has found.  What a model
lacks is judged in the guest: certify.cpu_flags.
"""

from collections.abc import Iterator
from typing import Final

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Check
from nova_perfvm.measure.checks.host_flaws import Flaw, of_flaws
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.observed import cpu_flags, processes
from nova_perfvm.measure.observed.domains import Domain

# QEMU's of no real CPU, and those of before 2010.
_NAMES: Final = """
qemu32 qemu64 kvm32 kvm64 486 pentium pentium2 pentium3 coreduo core2duo n270 athlon
phenom Conroe Penryn Opteron_G1 Opteron_G2 Opteron_G3
"""
_POOR: Final = frozenset(_NAMES.split())
_TOLD: Final = {"host-passthrough": "host", "maximum": "max"}


def flaws(subject: HostSubject, domain: Domain) -> Iterator[Flaw]:
    """Compare what libvirt's XML and QEMU's command line say of a VM's CPU."""
    told = processes.options(subject.collected, subject.process_of(domain))
    machine, *flags = told.get("machine", "").split(",")
    given_here = (f.partition("=")[2] for f in flags if f.startswith("accel="))
    accelerator = told.get("accel") or next(given_here, "tcg")
    if domain.kind != "kvm" or accelerator.partition(",")[0] != "kvm":
        yield Level.FAILURE, f"type {domain.kind}, QEMU runs it on {accelerator}"
    cpu = domain.xml.find("cpu")
    mode = "" if cpu is None else cpu.get("mode", "custom")
    model = domain.xml.findtext("cpu/model", "").strip()
    given = told.get("cpu", "").partition(",")[0]
    known = mode and given and given == _TOLD.get(mode, given)
    if not known or {model, given} & _POOR:
        shown = f"mode {mode or 'none'}, model {model or 'none'}"
        yield Level.FAILURE, f"CPU of {shown}, of QEMU {given or 'none'}"
    for feature in domain.xml.iterfind("cpu/feature[@policy='disable']"):
        flag = cpu_flags.kernel_name(feature.get("name", ""))
        if flag in cpu_flags.NEEDED & cpu_flags.told(subject.collected):
            yield Level.FAILURE, f"{flag} of the host's is taken away"
    number, _, rest = told.get("smp", "").partition(",")
    parts = dict(part.partition("=")[::2] for part in rest.split(","))
    most = parts.get("maxcpus", number)
    if not str(domain.vcpus) == str(domain.most_vcpus) == most:
        shown = f"{domain.vcpus} of {domain.most_vcpus} vCPUs are plugged in"
        yield Level.FAILURE, f"{shown}, QEMU has {most or 'none'}"
    if machine != domain.machine:
        yield Level.FAILURE, f"machine {domain.machine}, of QEMU {machine or 'none'}"


CHECK = Check(
    28,
    "hypervisor.virtual_cpu",
    "A VM has the host's CPU, by KVM",
    of_flaws(
        flaws,
        "KVM, all vCPUs, the host's CPU; QEMU has what the XML says",
        "/proc/PID/cmdline of QEMU",
        "virt_type = kvm and cpu_mode = host-passthrough or host-model in [libvirt] of "
        "the host's nova.conf",
    ),
)
