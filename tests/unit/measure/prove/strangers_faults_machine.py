# SPDX-License-Identifier: Apache-2.0
"""Faults of memory, guests and pins: {name: edit of a case}."""

from dataclasses import replace

from nova_perfvm.measure.collect.collected import CommandOutput
from tests.unit.measure import guests, hosts
from tests.unit.measure.prove import sound
from tests.unit.measure.prove.strangers_edits import (
    changed,
    class_with,
    host_commands,
    in_guests,
    in_xml,
    on_host,
    pid,
    scope,
    task,
    together,
)

CPU, NODE, GB = hosts.CPU, hosts.NODE, 2**20
_BOUND = (
    "<memory mode='strict' nodeset='0'/>\n    <memnode cellid='0' mode='strict' "
    "nodeset='0'/>"
)
_THP = "/sys/kernel/mm/transparent_hugepage/enabled"


def _maps(number, by_node, page_kb=4, **when):
    """Return an edit of where a VM's memory is."""
    path = f"/proc/{pid(number)}/numa_maps"
    return on_host({path: hosts.numa_maps(by_node, page_kb)}, **when)


def _status(number, thread, cpus, nodes=None):
    """Return an edit of where a VM's thread may run."""
    name = {"qemu": "qemu-system-x86", "vhost": f"vhost-{pid(number)}"}.get(
        thread, f"CPU {thread}/KVM"
    )
    text = hosts.status(name, cpus, number - 1 if nodes is None else nodes)
    return on_host({f"{task(number, thread)}/status": text})


def _paged(size_kb, declared, of_domain):
    """Return an edit to a class of huge pages, and VMs of others."""

    def edit(case):
        class_with(mem_page_size=declared)(case)
        case.host = hosts.host(pages_kb=of_domain)
        files = sound.identity("compute1")
        on_host(files, before=False)(case)
        for number in (1, 2):
            _maps(number, {number - 1: 128 * GB}, size_kb)(case)
        for node in (0, 1):
            for kb in (2048, 1048576):
                base = f"{NODE}/node{node}/hugepages/hugepages-{kb}kB"
                on_host({f"{base}/nr_hugepages": "131\n"})(case)
                on_host({f"{base}/free_hugepages": "3\n"})(case)

    return edit


def _third(xml):
    """Return an edit that starts a third VM."""

    def edit(case):
        case.host = hosts.with_domains(case.host, vm3=xml)
        nics = {
            f"/sys/class/net/tap3/statistics/{name}": "0\n"
            for name in (
                *("rx_packets", "tx_packets", "rx_dropped", "tx_dropped"),
                *("rx_errors", "rx_fifo_errors", "rx_missed_errors"),
            )
        }
        on_host(nics)(case)

    return edit


def _beside_qemu(ticks, cpus=range(20)):
    """Return an edit of what others than VMs used of CPUs between the looks."""

    def change(text):
        rows = []
        for row in text.splitlines():
            name, *numbers = row.split()
            if name[3:].isdigit() and int(name[3:]) in cpus:
                numbers[0] = str(int(numbers[0]) + ticks)
                numbers[3] = str(int(numbers[3]) - ticks)
            rows.append(" ".join([name, *numbers]))
        return "\n".join(rows) + "\n"

    return on_host({"/proc/stat": change}, before=False, look="later")


def _fewer_cpus(online, offline):
    """Return an edit of which CPUs a guest has online."""
    return in_guests(
        {f"{CPU}/online": f"{online}\n", f"{CPU}/offline": f"{offline}\n"}, vms=(2,)
    )


def _kernel_line(words, vms=(1, 2), **when):
    """Return an edit that adds words to VMs' command line."""
    return in_guests(
        {"/proc/cmdline": changed("console=ttyS0", f"console=ttyS0 {words}")},
        vms=vms,
        **when,
    )


def _without_flags(*flags):
    """Return an edit of VMs' CPU flags."""
    text = guests.cpuinfo(" hypervisor", sound.CPU, without=flags)
    return in_guests({"/proc/cpuinfo": text})


def _siblings(case):
    """Let both VMs have threads of the same cores."""
    for cpu in range(40):
        pair = f"{cpu % 20},{cpu % 20 + 20}\n"
        on_host({f"{CPU}/cpu{cpu}/topology/thread_siblings_list": pair})(case)
    on_host({f"{CPU}/smt/control": "on\n", f"{CPU}/smt/active": "1\n"})(case)


def _ticks(stolen):
    return guests.stat(20, stolen, idle=2000)


MEMORY = {
    "half of a VM's memory on the other node": _maps(1, {0: 64 * GB, 1: 64 * GB}),
    "all of a VM's memory on the other node": _maps(2, {0: 128 * GB}),
    "a twentieth of a VM's memory on the other node": _maps(
        1, {0: 122 * GB, 1: 6 * GB}
    ),
    "memory preferred, not bound": in_xml(("mode='strict'", "mode='preferred'")),
    "no numatune": in_xml((_BOUND, ""), vms=(1,)),
    "memory bound to both nodes": in_xml(
        ("mode='strict' nodeset='0'", "mode='strict' nodeset='0-1'"), vms=(1,)
    ),
    "memory bound to the other node": in_xml(
        ("mode='strict' nodeset='0'", "mode='strict' nodeset='1'"), vms=(1,)
    ),
    "memory interleaved": in_xml(("mode='strict'", "mode='interleave'"), vms=(2,)),
    "libvirt's memory mode restrictive, pages elsewhere": together(
        in_xml(("mode='strict'", "mode='restrictive'"), vms=(1,)),
        _maps(1, {0: 20 * GB, 1: 108 * GB}),
    ),
    "class of 1 GiB pages, VMs of 2 MiB": _paged(2048, "1GB", 2048),
    "class of 2 MiB pages, VMs of small ones": _paged(4, "2MB", None),
    "class of large pages, VMs of small ones": _paged(4, "large", None),
    "huge pages for libvirt, small ones in use": _paged(4, "1GB", 1048576),
    "ballooned to a half": in_xml(
        (
            f"<currentMemory unit='KiB'>{128 * GB}",
            f"<currentMemory unit='KiB'>{64 * GB}",
        )
    ),
    "memory of a VM swapped out": on_host(
        {
            f"/proc/{pid(1)}/status": changed(
                "VmSwap:\t       0 kB", "VmSwap:\t 9123456 kB"
            )
        }
    ),
    "half of a VM's memory never touched": _maps(1, {0: 60 * GB}),
    "KSM merges": on_host(
        {
            "/sys/kernel/mm/ksm/run": "1\n",
            "/sys/kernel/mm/ksm/pages_sharing": "8123441\n",
        }
    ),
    "KSM ran while the host was measured": on_host(
        {"/sys/kernel/mm/ksm/run": "1\n"}, after=False
    ),
    "KSM stopped, its pages still merged": on_host(
        {
            "/sys/kernel/mm/ksm/run": "0\n",
            "/sys/kernel/mm/ksm/pages_sharing": "8123441\n",
        }
    ),
    "NUMA balancing": on_host({"/proc/sys/kernel/numa_balancing": "1\n"}),
    "NUMA balancing until it was collected": on_host(
        {"/proc/sys/kernel/numa_balancing": "1\n"}, after=False
    ),
    "THP was never while measured, always since": on_host(
        {_THP: "always madvise [never]\n"}, after=False
    ),
    "cgroup reclaims a VM's memory": on_host(
        {
            f"{scope(2).removesuffix('/libvirt')}/memory.events": (
                hosts.MEMORY_EVENTS.format(high=91234)
            )
        },
        before=False,
        look="later",
    ),
    "cpuset lets a VM have both nodes' memory, half is there": together(
        on_host({f"{scope(1)}/emulator/cpuset.mems*": "0-1\n"}),
        _maps(1, {0: 64 * GB, 1: 64 * GB}),
    ),
    "guest has half of the flavor's memory": in_guests(
        {"/proc/meminfo": f"MemTotal:       {63 * GB} kB\nMemFree: {50 * GB} kB\n"}
    ),
    "guest's kernel line cuts its memory": _kernel_line("mem=64G"),
    "domain has less memory than the flavor": in_xml(
        (f"<memory unit='KiB'>{128 * GB}", f"<memory unit='KiB'>{96 * GB}"), vms=(2,)
    ),
    "correctable errors while it was collected": on_host(
        {"/sys/devices/system/edac/mc/mc0/ce_count": "512\n"},
        before=False,
        look="later",
    ),
    "uncorrectable errors in the hour": together(
        on_host({"/sys/devices/system/edac/mc/mc0/ue_count": "0\n"}),
        on_host({"/sys/devices/system/edac/mc/mc0/ue_count": "2\n"}, before=False),
    ),
}
GUEST = {
    "steal between the looks": in_guests(
        {"/proc/stat": _ticks(300)}, before=False, look="later"
    ),
    "steal in the hour": together(
        in_guests({"/proc/stat": guests.stat(20, 1)}, after=False),
        in_guests({"/proc/stat": guests.stat(20, 40000)}, before=False, look="files"),
        in_guests({"/proc/stat": _ticks(40000)}, before=False, look="later"),
    ),
    "steal of one CPU": in_guests(
        {"/proc/stat": guests.stat(20, 1, 400, idle=2000)}, before=False, look="later"
    ),
    "clock from jiffies": in_guests({hosts.CLOCK: "jiffies\n"}),
    "host's clock from HPET": on_host({hosts.CLOCK: "hpet\n"}),
    "host's clock was HPET while measured": on_host(
        {hosts.CLOCK: "hpet\n"}, after=False
    ),
    "clock of a VM changed in the hour": in_guests(
        {hosts.CLOCK: "acpi_pm\n"}, after=False
    ),
    "mitigations off in guests": _kernel_line("mitigations=off"),
    "page tables not isolated in guests": _kernel_line("nopti"),
    "Spectre's mitigations off in guests": _kernel_line(
        "nospectre_v1 nospectre_v2 spec_store_bypass_disable=off"
    ),
    "retbleed and MDS off in guests": _kernel_line("retbleed=off mds=off tsx=on"),
    "branch history injection possible in guests": _kernel_line(
        "spectre_bhi=off indirect_target_selection=off"
    ),
    "gather data sampling off in guests": _kernel_line("gather_data_sampling=off"),
    "srso off in guests": _kernel_line("spec_rstack_overflow=off"),
    "guests poll while idle": _kernel_line("idle=poll"),
    "guests without ticks, isolated": _kernel_line(
        "isolcpus=1-19 nohz_full=1-19 rcu_nocbs=1-19"
    ),
    "mitigations off in guests until collected": _kernel_line(
        "mitigations=off", after=False
    ),
    "guest's CPU 19 is offline": _fewer_cpus("0-18", "19"),
    "guest booted with ten CPUs": together(
        _kernel_line("maxcpus=10", vms=(2,)), _fewer_cpus("0-9", "10-19")
    ),
    "guest rebooted in the hour": in_guests(
        {sound.BOOT: "abababab-0000-4000-8000-000000000000\n"}, vms=(2,), after=False
    ),
    "guest was rebuilt: another UUID": in_guests(
        {sound.UUID: f"{hosts.UUIDS[4]}\n"}, vms=(1,), after=False
    ),
    "guest is of another host": in_guests(
        {
            sound.UUID: f"{hosts.UUIDS[4]}\n",
            "/sys/class/net/eth0/address": "fa:16:3e:77:00:01\n",
        },
        vms=(1,),
    ),
    "both guests' files are of one VM": lambda case: case.guests.__setitem__(
        1, case.guests[0]
    ),
    "guest's kernel changed in the hour": in_guests(
        {"/proc/sys/kernel/osrelease": "6.1.0-99\n"}, vms=(1,), before=False
    ),
    "guests have no AVX-512": _without_flags(
        *("avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl", "avx512_vnni")
    ),
    "guests have no AES and AVX2": _without_flags("aes", "avx2", "fma"),
    "CPU model for migrations across the rack": together(
        in_xml(
            (">Cascadelake-Server<", ">Nehalem<"),
        ),
        _without_flags("avx", "avx2", "fma", "bmi1", "bmi2", "avx512f"),
    ),
    "QEMU emulates": in_xml(("<domain type='kvm'", "<domain type='qemu'")),
    "guest without the APIC's timer": _without_flags("tsc_deadline_timer", "x2apic"),
    "guest sees two nodes": in_guests(
        {f"{NODE}/online": "0-1\n", f"{NODE}/has_memory": "0-1\n"}, vms=(1,)
    ),
    "half of the vCPUs are plugged in": in_xml(
        (
            "<vcpu placement='static'>20</vcpu>",
            "<vcpu placement='static' current='10'>20</vcpu>",
        ),
        vms=(1,),
    ),
    "guest idle while it was collected": in_guests(
        {
            "/proc/stat": guests.stat(20, 1, idle=2000, busy=0.0),
        },
        before=False,
        look="later",
    ),
    "no shadow of EPT: page tables in software": on_host(
        {"/sys/module/kvm_intel/parameters/ept": "N\n"}
    ),
    "clocks of the host's CPUs capped": on_host(
        {f"{CPU}/cpu*/cpufreq/scaling_max_freq": "1500000\n"}
    ),
}
PINS = {
    "emulator threads on both nodes": together(
        in_xml(
            ("<emulatorpin cpuset='0-19'/>", "<emulatorpin cpuset='0-39'/>"), vms=(1,)
        ),
        _status(1, "qemu", "0-39"),
    ),
    "emulator threads bound by nobody": in_xml(
        ("    <emulatorpin cpuset='0-19'/>\n", ""), vms=(1,)
    ),
    "no vCPU is pinned": in_xml(
        *((f"    <vcpupin vcpu='{n}' cpuset='{n}'/>\n", "") for n in range(20)),
        vms=(1,),
    ),
    "a vCPU of no pin": in_xml(("    <vcpupin vcpu='7' cpuset='7'/>\n", ""), vms=(1,)),
    "vCPUs float in their node": in_xml(
        *((f"vcpu='{n}' cpuset='{n}'", f"vcpu='{n}' cpuset='0-19'") for n in range(20)),
        vms=(1,),
    ),
    "a vCPU on the other VM's CPU": together(
        in_xml(("vcpu='5' cpuset='5'", "vcpu='5' cpuset='25'"), vms=(1,)),
        _status(1, 5, "25"),
    ),
    "two vCPUs on a CPU": together(
        in_xml(("vcpu='5' cpuset='5'", "vcpu='5' cpuset='4'"), vms=(1,)),
        _status(1, 5, "4"),
    ),
    "taskset moved a vCPU": _status(1, 5, "25"),
    "taskset set a vCPU free": _status(2, 3, "0-39"),
    "vCPU may run on two CPUs": _status(1, 5, "5-6"),
    "cpuset of a vCPU has another CPU": on_host(
        {f"{scope(1)}/vcpu5/cpuset.cpus*": "6\n"}
    ),
    "VMs have threads of the same cores": _siblings,
    "quota of a vCPU": on_host({f"{scope(1)}/vcpu0/cpu.max": "50000 100000\n"}),
    "quota of a VM": on_host(
        {f"{scope(1).removesuffix('/libvirt')}/cpu.max": "1400000 100000\n"}
    ),
    "quota of all machines": on_host(
        {f"{hosts.CGROUP}/machine.slice/cpu.max": "3000000 100000\n"}
    ),
    "a VM was throttled": on_host(
        {
            f"{scope(2)}/vcpu3/cpu.stat": hosts.CPU_STAT.format(
                periods=900, throttled=412
            )
        },
        before=False,
        look="later",
    ),
    "quota by libvirt": host_commands(
        {
            f"virsh -r schedinfo {hosts.UUIDS[0]}": changed(
                "vcpu_quota     : 17592186044415", "vcpu_quota     : 50000"
            )
        }
    ),
    "quota in the domain": in_xml(
        (
            "  <cputune>\n",
            "  <cputune>\n    <period>100000</period>\n    <quota>70000</quota>\n",
        )
    ),
    "global quota in the domain": in_xml(
        (
            "  <cputune>\n",
            (
                "  <cputune>\n    <global_period>100000</global_period>\n"
                "    <global_quota>1500000</global_quota>\n"
            ),
        ),
        vms=(2,),
    ),
    "a VM is idle class": on_host({f"{scope(1)}/vcpu0/cpu.idle": "1\n"}),
    "a vCPU is nice": on_host(
        {f"{task(1, 0)}/stat": hosts.task_stat(pid(1) + 10, "CPU 0/KVM", nice=19)}
    ),
    "a vCPU is SCHED_IDLE": on_host(
        {f"{task(1, 4)}/stat": hosts.task_stat(pid(1) + 14, "CPU 4/KVM", policy=5)}
    ),
    "vCPUs wait for their CPUs": on_host(
        {f"{task(1, n)}/schedstat": hosts.schedstat(101.0, 3.0) for n in range(20)},
        before=False,
        look="later",
    ),
    "one vCPU waits for its CPU": on_host(
        {f"{task(2, 6)}/schedstat": hosts.schedstat(101.0, 1.5)},
        before=False,
        look="later",
    ),
    "a third VM shares their CPUs": _third(hosts.general_xml(3, "0-39")),
    "a third VM shares node 1's CPUs": _third(hosts.general_xml(3)),
    "a third VM pinned on the same CPUs": _third(
        hosts.domain_xml(3, own=list(range(20))).replace("nodeset='2'", "nodeset='0'")
    ),
    "one VM on the host": lambda case: setattr(
        case,
        "host",
        replace(
            case.host,
            commands={
                line: out
                for line, out in case.host.commands.items()
                if hosts.UUIDS[1] not in line
            }
            | {"virsh -r list --all --uuid": CommandOutput(0, f"{hosts.UUIDS[0]}\n")},
        ),
    ),
    "vhost's threads on the other node": together(
        _status(1, "vhost", "20-39", 1),
    ),
    "QEMU's main thread everywhere": _status(1, "qemu", "0-39", "0-1"),
    "I/O thread on the other VM's CPUs": in_xml(
        (
            "<iothreadpin iothread='1' cpuset='0-19'/>",
            "<iothreadpin iothread='1' cpuset='20-39'/>",
        ),
        vms=(1,),
    ),
    "a VM has a CPU that is offline": on_host(
        {f"{CPU}/online": "0-38\n", f"{CPU}/offline": "39\n"}
    ),
    "interrupts take 40 % of a VM's CPU": on_host(
        {"/proc/stat": hosts.stat(40, 1000, at={3: 400})}, before=False, look="later"
    ),
    "interrupts take 5 % of all CPUs": on_host(
        {"/proc/stat": hosts.stat(40, 1000, softirq=50)}, before=False, look="later"
    ),
    "Ceph's OSDs run on a VM's CPUs": _beside_qemu(250),
    "a backup runs on one CPU of a VM": _beside_qemu(500, range(33, 34)),
    "apt runs on CPUs of VMs 3 % of the time": _beside_qemu(30, range(40)),
    "vCPUs are real-time beside the host's own": on_host(
        {
            f"{task(1, n)}/stat": hosts.task_stat(
                pid(1) + 10 + n, f"CPU {n}/KVM", policy=3
            )
            for n in range(20)
        }
    ),
    "a core of three threads for a vCPU of the same VM": together(
        *(
            on_host(
                {
                    f"{CPU}/cpu{n}/topology/thread_siblings_list": (
                        f"{n - n % 2}-{n - n % 2 + 1}\n"
                    )
                }
            )
            for n in range(40)
        ),
        on_host({f"{CPU}/smt/control": "on\n"}),
    ),
}
FAULTS = MEMORY | GUEST | PINS
