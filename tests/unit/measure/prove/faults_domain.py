# SPDX-License-Identifier: Apache-2.0
"""Faults of a VM's CPU, and of what limits its time."""

from nova_perfvm.measure.collect.collected import CommandOutput
from tests.unit.measure import guests, hosts
from tests.unit.measure.prove import sound
from tests.unit.measure.prove.faults import (
    VMS,
    both,
    faults_of,
    group,
    guest,
    host,
    task,
    xml,
)

SLICE = f"{hosts.CGROUP}/machine.slice"
CPUINFO = "/proc/cpuinfo"


def scope(vm):
    return f"{SLICE}/machine-qemu\\x2d{vm}.scope"


def cmdline(vm, old, new):
    """Return a fault of QEMU's command line."""
    path = f"/proc/{hosts.FIRST_PID + 100 * vm}/cmdline"
    text = sound.host().files[path]
    assert old in text
    return host({path: text.replace(old, new)})


def _cpu(vm):
    model = "<model fallback='forbid'>Cascadelake-Server</model>"
    mode = "mode='custom' match='exact' check='full'"
    hle = "<feature policy='disable' name='hle'/>"
    plugged = "<vcpu placement='static'>20<"

    def poor(name):
        return both(
            xml(vm, (model, f"<model fallback='forbid'>{name}</model>")),
            cmdline(vm, "Cascadelake-Server,", f"{name},"),
        )

    def lacking(*flags):
        inside = guests.cpuinfo("hypervisor", sound.CPU, without=flags)
        return guest(vm, {CPUINFO: inside})

    return {
        "hypervisor.virtual_cpu": {
            "it is emulated": xml(vm, ("<domain type='kvm'", "<domain type='qemu'")),
            "QEMU emulates": cmdline(vm, "-accel\0kvm", "-accel\0tcg"),
            "QEMU was told no accelerator": cmdline(vm, "-accel\0kvm\0", ""),
            **{f"its CPU is {m}": poor(m) for m in ("qemu64", "kvm64", "Conroe")},
            "it was given no CPU": xml(vm, (mode, "mode=''"), (model, "")),
            "QEMU has qemu64, whatever libvirt says": cmdline(
                vm, "Cascadelake-Server,", "qemu64,"
            ),
            "libvirt says host-passthrough, QEMU has a model": xml(
                vm, (mode, "mode='host-passthrough'"), (model, "")
            ),
            **{
                f"{name} is taken away": xml(vm, (hle, hle.replace("hle", name)))
                for name in ("x2apic", "pcid", "avx512vnni", "tsc-deadline")
            },
            "16 of 20 vCPUs are plugged in": xml(
                vm, (plugged, plugged.replace(">", " current='16'>", 1))
            ),
            "QEMU has 16 vCPUs": cmdline(vm, "\x0020,sockets=20", "\x0016,sockets=16"),
            "QEMU has another machine": cmdline(vm, "pc-q35-9.2", "pc-q35-6.2"),
            "QEMU's command line was not read": host(
                {f"/proc/{hosts.FIRST_PID + 100 * vm}/cmdline": None}
            ),
        },
        "proof.cpu_flags": {
            "a CPU of before AVX": lacking(
                *(f for f in guests.FLAGS.split() if "avx" in f)
            ),
            **{
                f"{flag} is missing inside": lacking(flag)
                for flag in ("pcid", "x2apic", "avx512f", "aes", "tsc_deadline_timer")
            },
            "its flags were not read": guest(vm, {CPUINFO: None}),
        },
    }


def _unread():
    return {
        "proof.cpu_flags": {
            "the host's flags were not read": host(
                {CPUINFO: f"model name\t: {sound.CPU}\n"}
            ),
        },
    }


def _time(vm):
    schedinfo = f"virsh -r schedinfo {hosts.UUIDS[vm - 1]}"
    unlimited = "17592186044415"
    leaf = group(vm, "vcpu7")

    def tuned(text):
        return xml(vm, ("  <cputune>\n", f"  <cputune>{text}\n"))

    def told(name):
        old = f"{name:15}: {unlimited}"
        text = hosts.SCHEDINFO.replace(old, old.replace(unlimited, "80000"))
        return host(commands={schedinfo: CommandOutput(0, text)})

    def counted(directory, before, later):
        path = f"{directory}/cpu.stat"
        texts = [
            hosts.CPU_STAT.format(periods=periods, throttled=throttled)
            for periods, throttled in (before, later)
        ]
        return host({path: texts[0]}, later={path: texts[1]})

    def scheduled(number, **how):
        return host(
            {f"{task(vm, number)}/stat": hosts.task_stat(1, "CPU 1/KVM", **how)}
        )

    old = "4:cpu,cpuacct:/machine.slice/vm\n0::/machine.slice\n"
    v1 = f"{hosts.CGROUP}/cpu/machine.slice"
    cgroups = {
        path: old
        for path in sound.host().files
        if path.startswith(f"/proc/{hosts.FIRST_PID + 100 * vm}/")
        and path.endswith("/cgroup")
    }
    of_version_1 = {
        f"{directory}/{name}": text
        for directory in (v1, f"{v1}/vm")
        for name, text in (
            ("cpu.cfs_quota_us", "-1\n"),
            ("cpu.shares", "1024\n"),
            ("cpu.stat", hosts.CPU_STAT.format(periods=0, throttled=0)),
        )
    }
    return {
        "hypervisor.cpu_limits": {
            **{
                f"a {name} in the XML": tuned(f"<{name}>80000</{name}>")
                for name in (
                    "quota",
                    "global_quota",
                    "emulator_quota",
                    "iothread_quota",
                )
            },
            "half of the memory bandwidth": tuned(
                "<memorytune vcpus='0-19'><node id='0' bandwidth='50'/></memorytune>"
            ),
            "a part of the cache": tuned(
                "<cachetune vcpus='0-19'><cache id='0' level='3' type='both' size='3'"
                " unit='MiB'/></cachetune>"
            ),
            **{
                f"a {name} by schedinfo": told(name)
                for name in ("vcpu_quota", "global_quota", "emulator_quota")
            },
            "a quota of a vCPU's cgroup": host({f"{leaf}/cpu.max": "80000 100000\n"}),
            "a quota of its scope": host({f"{scope(vm)}/cpu.max": "1600000 100000\n"}),
            "a quota of QEMU's threads": host(
                {f"{group(vm, 'emulator')}/cpu.max": "20000 100000\n"}
            ),
            "a quota of version 1": host(
                cgroups | of_version_1 | {f"{v1}/cpu.cfs_quota_us": "80000\n"}
            ),
            "no quota of version 1 was read": host(cgroups),
            "its scope's limits were not read": host({f"{scope(vm)}/cpu.max": None}),
            "a vCPU was throttled": counted(leaf, (0, 0), (50, 7)),
            "its scope was throttled once more": counted(
                scope(vm), (900, 40), (910, 41)
            ),
            "it was throttled before": counted(
                scope(vm), (918233, 40112), (918233, 40112)
            ),
            "throttling of a vCPU was not read": host({f"{leaf}/cpu.stat": None}),
            "its cgroup is idle's": host({f"{scope(vm)}/cpu.idle": "1\n"}),
            "a vCPU is niced": scheduled(17, nice=19),
            "a vCPU has what idle leaves": scheduled(10, policy=5),
            "QEMU is a batch": scheduled(0, policy=3),
            "how a vCPU is scheduled was not read": host(
                {f"{task(vm, 12)}/stat": None}
            ),
        },
    }


def _slice():
    return {
        "hypervisor.cpu_limits": {
            "a quota of machine.slice": host({f"{SLICE}/cpu.max": "3000000 100000\n"}),
            "machine.slice was not looked at": host(
                {f"{SLICE}/cgroup.controllers": None}
            ),
        },
        "hypervisor.io_limits": {
            "machine.slice limits a device": host(
                {f"{SLICE}/io.max": "259:3 rbps=max wbps=max riops=4000 wiops=max\n"}
            ),
        },
    }


FAULTS = [
    *(
        f
        for vm in VMS
        for table in (_cpu, _time)
        for f in faults_of(table(vm), f"vm{vm}: ")
    ),
    *faults_of(_unread()),
    *faults_of(_slice()),
]
