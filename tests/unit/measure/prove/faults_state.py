# SPDX-License-Identifier: Apache-2.0
"""Faults of what machines are set to, and of when they were so."""

from datetime import datetime, timedelta

from nova_perfvm.measure.collect.collected import CommandOutput
from tests.unit.measure import guests, hosts
from tests.unit.measure.prove import sound
from tests.unit.measure.prove.faults import (
    CPU,
    INTERRUPTS,
    SOFTNET,
    STAT,
    VMS,
    both,
    faults_of,
    guest,
    guest_of,
    host,
    noted,
)
from tests.unit.measure.prove.sound import BOOT

CMDLINE, CPUINFO = "/proc/cmdline", "/proc/cpuinfo"
FREQUENCY = CPU + "/cpu{}/cpufreq/{}"


def _clocked(cpus, **values):
    """Return a fault of the clocks of CPUs."""
    return host(
        {
            FREQUENCY.format(cpu, name): f"{value}\n"
            for cpu in cpus
            for name, value in values.items()
        }
    )


def _moved(path, later):
    """Return a fault: a counter moves between the looks."""
    return host({path: "3\n"}, later={path: later})


def _settings():
    """What the host is, and what its kernel and firmware are set to."""
    dmi = "/sys/class/dmi/id"
    virtual = sound.identity("compute1")[CPUINFO].replace("avx512f", "hypervisor")
    lowest = {"scaling_driver": "acpi-cpufreq", "scaling_governor": "powersave"}
    throttled = f"{CPU}/cpu7/thermal_throttle/package_throttle_count"
    saving = "[compute]\ncpu_dedicated_set = 0-39\n[libvirt]\ncpu_power_management = "
    status = f"/proc/{hosts.FIRST_PID + 200}/status"
    swapped = sound.host().files[status].replace("       0 kB", " 1843200 kB")

    def resting(case):
        case.host = guests.having(
            hosts.host(vms=1),
            files={f"{CPU}/online": "0-19\n", **sound.identity("compute1")},
        )

    return {
        "hypervisor.governor": {
            "all CPUs at their lowest clock": _clocked(range(40), **lowest),
            "CPU 27 at its lowest clock": _clocked([27], **lowest),
        },
        "hypervisor.frequency": {
            "clocks capped at 1.8 GHz": _clocked(range(40), scaling_max_freq=1800000),
            "the clock of CPU 25 capped at 1.8 GHz": _clocked(
                [25], scaling_max_freq=1800000
            ),
            "half of a VM's CPUs are efficiency cores": _clocked(
                range(10, 20), cpuinfo_max_freq=2600000, scaling_max_freq=2600000
            ),
        },
        "hypervisor.hardware": {
            "the host is a VM, by its CPU": host({CPUINFO: virtual}),
            "the host is a VM, by its firmware": host(
                {f"{dmi}/product_name": "OpenStack Nova\n"}
            ),
            "its CPUs were not read": host({CPUINFO: None}),
            "too hot, clocks drop": _moved(throttled, "815\n"),
            "memory has errors": _moved(
                "/sys/devices/system/edac/mc/mc0/ce_count", "2003\n"
            ),
            "shadow pages instead of nested": host(
                {"/sys/module/kvm_intel/parameters/ept": "N\n"}
            ),
        },
        "hypervisor.clocksource": {
            "the host's TSC is not stable": host({hosts.CLOCK: "hpet\n"}),
        },
        "hypervisor.swap": {
            "1.8 GiB of vm2 in swap": host({status: swapped}),
            "what is in swap was not read": host({status: None}),
        },
        "hypervisor.ksm": {
            "KSM stopped, pages are merged": host(
                {"/sys/kernel/mm/ksm/pages_sharing": "400000\n"}
            ),
        },
        "hypervisor.cpu_sets": {
            "a node rests, as no VM is there": resting,
            "a CPU of a VM is offline, Nova saves power": host(
                {f"{CPU}/online": "0-36,38,39\n", "/etc/nova/nova.conf": f"{saving}1\n"}
            ),
            "a CPU of a VM is offline, Nova sets governors": host(
                {
                    f"{CPU}/online": "0-36,38,39\n",
                    "/etc/nova/nova.conf": f"{saving}true\n"
                    "cpu_power_management_strategy = governor\n",
                }
            ),
        },
    }


def _inside(vm):
    """What a guest's kernel was told."""
    return {
        "guest.kernel_line": {
            **{
                f"booted with {words}": guest(vm, {CMDLINE: f"quiet {words}\n"})
                for words in (
                    *("maxcpus=8", "nr_cpus=16", "nosmt", "isolcpus=4-19", "mem=64G"),
                    *("idle=poll", "no-steal-acc"),
                )
            },
            "its command line was not read": guest(vm, {CMDLINE: None}),
        },
        "proof.same_settings": {
            "booted with mitigations=off": guest(vm, {CMDLINE: "mitigations=off\n"}),
        },
    }


def _was(who, path, text):
    """Return a fault: a target was another way when it was measured."""

    def change(run):
        files = run["sessions"][0]["targets"][who]["collected"]["files"]
        files.pop(path, None)
        if text is not None:
            files[path] = text

    return noted(change)


def _before(who, kind):
    """What was otherwise when a machine was measured."""
    cpuinfo = (sound.host() if kind == "host" else sound.guest(1)).files[CPUINFO]
    return {
        "proof.same_state": {
            "it has started anew since": _was(who, BOOT, "other\n"),
            "its boot was not noted": _was(who, BOOT, None),
            "measured with mitigations=off": _was(who, CMDLINE, "mitigations=off\n"),
            "measured with fewer CPUs": _was(who, f"{CPU}/online", "0-1\n"),
            "measured with other microcode": _was(
                who, CPUINFO, cpuinfo.replace("0x5003707", "0x2b0004d0")
            ),
            "what it was is not noted": noted(
                lambda run: run["sessions"][0]["targets"][who].update(collected=None)
            ),
        },
        "proof.clocks": {
            f"{words}": noted(
                lambda run, ahead_s=ahead_s: [
                    step.update(ahead_s=dict.fromkeys(step["targets"], ahead_s(number)))
                    for number, step in enumerate(run["steps"])
                    if who in step["targets"]
                ]
            )
            for words, ahead_s in (
                ("its clock is 5 % slow", lambda number: 0.2 - 6 * number),
                ("its clock was set while it was measured", lambda n: 3.4 * (n > 5)),
                ("its clock is hours off", lambda _: 7200.0),
                ("its clock did not answer", lambda _: None),
            )
        },
    }


def _counters():
    """What counters moved in the hour, and stood still while it was collected."""
    net, stat, table = SOFTNET, STAT, sound.host().files[INTERRUPTS]
    errors = f"{table}MCE: {'1 ' * 40}  Machine check exceptions\n"
    moved = "numa_pages_migrated 400000\n"
    return {
        "proof.counters": {
            "it was too hot in the hour": _was(
                "node0", f"{CPU}/cpu7/thermal_throttle/core_throttle_count", "2\n"
            ),
            "memory had errors in the hour": _was(
                "node0", "/sys/devices/system/edac/mc/mc0/ce_count", "7\n"
            ),
            "machine checks in the hour": host(
                {INTERRUPTS: errors}, later={INTERRUPTS: errors}
            ),
            "the host's kernel dropped packets in the hour": host(
                {net: hosts.softnet(40, 1000, 900)},
                later={net: hosts.softnet(40, 91000, 900)},
            ),
            "the kernel moved memory in the hour": host(
                {"/proc/vmstat": moved}, later={"/proc/vmstat": moved}
            ),
            "CPU 3 of vm1 was stolen in the hour": guest(
                1,
                {stat: guests.stat(20, more=500)},
                later={stat: guests.stat(20, 1, more=500, idle=2000)},
            ),
            "vm1 was collected before it was measured": guest_of(
                1, taken_at="2026-11-22T09:10:00+00:00"
            ),
        },
    }


def _settings_of_one_side():
    """What the guest has and its host has not."""
    pages = "/sys/kernel/mm/transparent_hugepage/enabled"
    found = f"{CPU}/vulnerabilities"
    return {
        "proof.same_settings": {
            "huge pages always in vm1 alone": guest(
                1, {pages: "[always] madvise never\n"}
            ),
            "no huge pages on the host": host({pages: "always madvise [never]\n"}),
            "huge pages were not read in vm1": guest(1, {pages: None}),
            "mds is not mitigated in vm2": guest(
                2, {f"{found}/mds": "Vulnerable; SMT Host state unknown\n"}
            ),
            "no mitigations in vm1": guest(
                1, {f"{found}/spectre_v2": "Vulnerable; IBPB: disabled\n"}
            ),
            "a larger MTU in vm1": guest(1, {"/sys/class/net/eth0/mtu": "9100\n"}),
            "offloads are off on the host alone": both(
                *(
                    plant(
                        commands={
                            f"ethtool -k {nic}": CommandOutput(
                                0, f"Features:\ntcp-segmentation-offload: {value}\n"
                            )
                        }
                    )
                    for plant, nic, value in (
                        (host, "eth0", "off"),
                        (host, "eth1", "off"),
                        (lambda **of: guest(1, **of), "eth0", "on"),
                        (lambda **of: guest(2, **of), "eth0", "on"),
                    )
                )
            ),
            "mitigations were not read on the host": host(
                dict.fromkeys(p for p in sound.host().files if p.startswith(found))
            ),
        },
        "proof.same_state": {
            "mitigations changed": _was("node0", f"{found}/mds", "Vulnerable\n"),
            "another clock source": _was("node1", hosts.CLOCK, "hpet\n"),
        },
    }


def _measuring():
    """What the host was when it was measured, and when steps were."""
    files, inside = sound.host().files, sound.guest(1).files
    begun = datetime.fromisoformat("2026-11-12T10:00:00+00:00")

    def resumed(hours):
        """Return a fault: so long between steps, the files in the middle of it."""
        return noted(
            lambda run: [
                step.update(started_at=(begun + timedelta(hours=hours * n)).isoformat())
                for n, step in enumerate(run["steps"])
            ]
        )

    def of_vms(**changes):
        return noted(
            lambda run: [
                step.update(changes)
                for step in run["steps"]
                if step["targets"] == ["vm1", "vm2"]
            ]
        )

    def alone(run):
        for step in run["steps"]:
            step["targets"] = step["targets"][:1]

    def late(run):
        run["steps"][30]["started_at"] = "2026-11-22T11:59:00+00:00"

    def began(vm, after_s):
        path = f"/proc/{hosts.FIRST_PID + 100 * vm}/stat"
        return host({path: hosts.process_stat(4100, "kvm", after_s)})

    return {
        "proof.same_state": {
            "baseline at the lowest clock": _was(
                "node1", FREQUENCY.format(25, "scaling_governor"), "powersave\n"
            ),
            "baseline without turbo": _was(
                "node0", f"{CPU}/intel_pstate/no_turbo", "1\n"
            ),
            "baseline with SMT": _was("node0", f"{CPU}/smt/control", "on\n"),
            "baseline capped": _was(
                "node0", FREQUENCY.format(3, "scaling_max_freq"), "1800000\n"
            ),
            "baseline measured inside a VM": _was("node0", CPUINFO, inside[CPUINFO]),
            "vm1 measured on the host": _was("vm1", CPUINFO, files[CPUINFO]),
            "vm2 came by live migration": began(2, 2 * hosts.DAY_S - 1200),
            "vm1 was started anew": began(1, 2 * hosts.DAY_S - 600),
            "when vm1 was started was not read": host(
                {f"/proc/{hosts.FIRST_PID + 100}/stat": None}
            ),
        },
        "proof.same_time": {
            "a run over 20 days": resumed(40),
            "a step a day": resumed(24),
            "a step every two hours": resumed(2),
            "one step of a round two hours later": noted(late),
            "how long steps took is not noted": noted(
                lambda run: [step.pop("took_s") for step in run["steps"]]
            ),
        },
        "proof.at_once": {
            "VMs began 52 of 60 s apart": of_vms(started_apart_s=52.0),
            "VMs one after the other": noted(alone),
            "how far apart VMs began is not noted": of_vms(started_apart_s=None),
        },
        "proof.distinct": {
            "vm2 has the boot of vm1": guest(2, {BOOT: inside[BOOT]}),
            "the host has the boot of vm1": host({BOOT: inside[BOOT]}),
            "the boot of vm2 was not read": guest(2, {BOOT: None}),
        },
    }


FAULTS = [
    *faults_of(_settings()),
    *(f for vm in VMS for f in faults_of(_inside(vm), f"vm{vm}: ")),
    *(
        f
        for who, kind in (("node0", "host"), ("node1", "host"), ("vm1", "guest"))
        for f in faults_of(_before(who, kind), f"{who}: ")
    ),
    *faults_of(_counters()),
    *faults_of(_settings_of_one_side()),
    *faults_of(_measuring()),
]
