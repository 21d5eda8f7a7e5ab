# SPDX-License-Identifier: Apache-2.0
"""What is collected on hosts, with faults or without: 2x20 with two VMs of 20 vCPUs."""

import json
from dataclasses import asdict, replace
from datetime import datetime
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.facts.snapshot import (
    ASSUMED,
    NOVA_DATABASE,
    ComputeHost,
    HostCell,
    Inventory,
    Provider,
    Server,
    ServerCell,
    Snapshot,
)
from nova_perfvm.measure.collect.collected import Collected, CommandOutput
from tests.unit.measure.guests import (
    OF_HOST,
    OFFLOADS,
    VULNERABILITIES,
    cpuinfo,
    interrupts,
)

UUIDS = tuple(f"{n}" * 8 + "-1111-4222-8333-" + f"{n}" * 12 for n in range(1, 10))
PROVIDER = "99999999-0000-4000-8000-000000000000"
HIGH = {
    "perfvm:class": "high-performance",
    "hw:cpu_policy": "dedicated",
    "hw:numa_nodes": "1",
    "hw:vif_multiqueue_enabled": "true",
}
CPU, NODE = "/sys/devices/system/cpu", "/sys/devices/system/node"
CGROUP = "/sys/fs/cgroup"
FIRST_PID = 4000
DAY_S = 86400
# Two days before anything is collected.
BOOTED = round(datetime.fromisoformat("2026-11-20T10:00:00+00:00").timestamp())
_NOVA = "http://openstack.org/xmlns/libvirt/nova/1.1"
_GB = 2**20


def own_cpus(number):
    """Return the CPUs of the VM with a number, from 1 on: those of a node."""
    return list(range(20 * (number - 1), 20 * number))


def domain_xml(
    number, pins=None, specs=HIGH, gb=128, pages_kb=None, queues=20, own=None
):
    """Return what libvirt says of a VM by Nova 34, pinned as it should be.

    :param pins: the CPUs of each vCPU, as text
    :param own: the CPUs of its node, if they are not 20
    """
    own = own or own_cpus(number)
    pins = pins or [str(cpu) for cpu in own]
    node, vcpus = number - 1, len(own)
    emulator = format_cpus(own)
    listed = "".join(
        f'<nova:extraSpec name="{k}">{v}</nova:extraSpec>' for k, v in specs.items()
    )
    tune = "".join(
        f"    <vcpupin vcpu='{vcpu}' cpuset='{pin}'/>\n"
        for vcpu, pin in enumerate(pins)
    )
    backing = (
        ""
        if pages_kb is None
        else (
            "  <memoryBacking><hugepages>"
            f"<page size='{pages_kb}' unit='KiB' nodeset='0'/>"
            "</hugepages></memoryBacking>\n"
        )
    )
    return f"""\
<domain type='kvm' id='{number}'>
  <name>instance-{number:08x}</name>
  <uuid>{UUIDS[number - 1]}</uuid>
  <metadata>
    <nova:instance xmlns:nova="{_NOVA}">
      <nova:package version="34.0.0"/>
      <nova:name>rgw{number}</nova:name>
      <nova:flavor name="hp.{vcpus}c.{gb}g" id="f1">
        <nova:memory>{gb * 1024}</nova:memory>
        <nova:vcpus>{vcpus}</nova:vcpus>
        <nova:extraSpecs>{listed}</nova:extraSpecs>
      </nova:flavor>
      <nova:image uuid=""><nova:properties/></nova:image>
    </nova:instance>
  </metadata>
  <memory unit='KiB'>{gb * _GB}</memory>
  <currentMemory unit='KiB'>{gb * _GB}</currentMemory>
{backing}  <vcpu placement='static'>{vcpus}</vcpu>
  <iothreads>1</iothreads>
  <cputune>
{tune}    <emulatorpin cpuset='{emulator}'/>
    <iothreadpin iothread='1' cpuset='{emulator}'/>
  </cputune>
  <numatune>
    <memory mode='strict' nodeset='{node}'/>
    <memnode cellid='0' mode='strict' nodeset='{node}'/>
  </numatune>
  <os><type arch='x86_64' machine='pc-q35-9.2'>hvm</type></os>
  <features><acpi/><apic/></features>
  <cpu mode='custom' match='exact' check='full'>
    <model fallback='forbid'>Cascadelake-Server</model>
    <vendor>Intel</vendor>
    <feature policy='require' name='ss'/>
    <feature policy='require' name='hypervisor'/>
    <feature policy='disable' name='hle'/>
    <feature policy='disable' name='rtm'/>
    <topology sockets='{vcpus}' dies='1' cores='1' threads='1'/>
    <numa><cell id='0' cpus='0-{vcpus - 1}' memory='{gb * _GB}' unit='KiB'/></numa>
  </cpu>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <disk type='block' device='disk'>
      <driver name='qemu' type='raw' cache='none' io='native'/>
      <source dev='/dev/nvme1n1' index='1'/>
      <backingStore/>
      <target dev='vda' bus='virtio'/>
      <serial>0a1b2c3d-4e5f-6789-abcd-ef000000000{number}</serial>
    </disk>
    <interface type='bridge'>
      <mac address='fa:16:3e:00:00:0{number}'/>
      <target dev='tap{number}'/>
      <model type='virtio'/>
      <driver name='vhost' queues='{queues}'/>
    </interface>
    <memballoon model='virtio' autodeflate='on' freePageReporting='on'/>
  </devices>
</domain>
"""


def general_xml(number, cpus="20-39"):
    """Return what libvirt says of a VM that shares CPUs."""
    xml = domain_xml(number, specs={"perfvm:class": "general"}, gb=16, queues=1)
    before, _, rest = xml.partition("  <cputune>")
    after = rest.partition("</numatune>\n")[2]
    return before.replace(
        "placement='static'", f"placement='static' cpuset='{cpus}'"
    ) + (after.replace(" queues='1'", ""))


def status(name, cpus, nodes):
    """Return /proc/PID/status."""
    return (
        f"Name:\t{name}\nUmask:\t0002\nState:\tS (sleeping)\n"
        f"Cpus_allowed:\tff,ffffffff\nCpus_allowed_list:\t{cpus}\n"
        f"VmSwap:\t       0 kB\nMems_allowed_list:\t{nodes}\n"
        "voluntary_ctxt_switches:\t1\n"
    )


def numa_maps(by_node, page_kb=4):
    """Return numa_maps of a VM that has so many KiB on each node, and of QEMU."""
    pages = " ".join(f"N{node}={kb // page_kb}" for node, kb in by_node.items())
    huge = "file=/dev/hugepages/libvirt/qemu/1-instance/ram huge" if page_kb > 4 else ""
    return (
        "55d0c8a00000 default file=/usr/bin/qemu-system-x86_64 mapped=900 mapmax=2 "
        "N0=900 kernelpagesize_kB=4\n"
        f"7f2c40000000 bind:0 {huge} anon=1 {pages} kernelpagesize_kB={page_kb}\n"
        "7f2d80021000 default\n"
        "7ffe3b9d1000 default stack\n"
    )


def process_stat(pid, name, began_s=DAY_S):
    """Return /proc/PID/stat of a process that began so long after the host."""
    rest = [pid, 0, -1, 4194560, *[0] * 8, 20, 0, 45, 0, round(began_s * 100)]
    shown = " ".join(map(str, [*rest, *[0] * 30]))
    return f"{pid} ({name}) S 1 {pid} {shown}\n"


def stat(cpus, ticks=0, softirq=5, at=None):
    """Return /proc/stat of a host, so many ticks of each CPU after the first look.

    A tenth of the time VMs ran, and interrupts took ``softirq`` of 1,000 ticks.

    :param at: {CPU: its softirq}, where it is another
    """
    rows = []
    for cpu in range(cpus):
        lost = ticks * (at or {}).get(cpu, softirq) // 1000
        ran = ticks // 10
        idle = 90000 + ticks - ran - lost - ticks // 500
        rows.append(
            f"cpu{cpu} {5000 + ran} 0 {900 + ticks // 500} {idle} 7 0 {70 + lost} 0 "
            f"{4800 + ran} 0"
        )
    return "\n".join(["cpu  1 0 1 1 0 0 0 0 0 0", *rows, f"btime {BOOTED}", ""])


def softirqs(cpus, received):
    """Return /proc/softirqs."""
    head = " ".join(f"CPU{cpu}" for cpu in range(cpus))
    return "".join(
        f"{name}: {' '.join(str(n) for _ in range(cpus))}\n"
        for name, n in (("TIMER", 10), ("NET_RX", received))
    ).join([f"   {head}\n", ""])


def softnet(cpus, packets, dropped=0):
    """Return /proc/net/softnet_stat."""
    rest = "00000000 " * 9
    return "".join(
        f"{packets:08x} {dropped:08x} 00000000 {rest}{cpu:08x} 0 0\n"
        for cpu in range(cpus)
    )


def nic_statistics(names, packets, **lost):
    """Return the counters of NICs."""
    zeros = dict.fromkeys(
        ("rx_dropped", "rx_errors", "rx_fifo_errors", "rx_missed_errors", "tx_dropped"),
        0,
    )
    counts = {"rx_packets": packets, "tx_packets": packets, **zeros, **lost}
    return {
        f"/sys/class/net/{name}/statistics/{counter}": f"{n}\n"
        for name in names
        for counter, n in counts.items()
    }


def task_stat(tid, name, nice=0, policy=0):
    """Return /proc/PID/task/TID/stat."""
    rest = ["S", *("0" for _ in range(49))]
    rest[19 - 3], rest[41 - 3] = str(nice), str(policy)
    return f"{tid} ({name}) {' '.join(rest)}\n"


CPU_STAT = """\
usage_usec 81347211
user_usec 71200113
system_usec 10147098
nr_periods {periods}
nr_throttled {throttled}
throttled_usec 0
nr_bursts 0
burst_usec 0
"""
MEMORY_EVENTS = "low 0\nhigh {high}\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n"


def cgroup(directory, *, threaded=False):
    """Return the files of a cgroup of version 2 that limits nothing.

    :param threaded: whether it is one of threads, which has fewer controllers
    """
    found = {
        "cgroup.controllers": f"cpuset cpu {'' if threaded else 'io memory '}pids\n",
        "cpu.max": "max 100000\n",
        "cpu.weight": "100\n",
        "cpu.idle": "0\n",
        "cpu.stat": CPU_STAT.format(periods=0, throttled=0),
    }
    if not threaded:
        found |= {
            "io.max": "",
            "memory.max": "max\n",
            "memory.events": MEMORY_EVENTS.format(high=0),
        }
    return {f"{directory}/{name}": text for name, text in found.items()}


SCHEDINFO = "Scheduler      : posix\ncpu_shares     : 100\n" + "".join(
    f"{of + '_period':15}: 100000\n{of + '_quota':15}: 17592186044415\n"
    for of in ("vcpu", "emulator", "global", "iothread")
)


def schedstat(ran_s, waited_s=0.0):
    """Return /proc/PID/task/TID/schedstat."""
    return f"{round(ran_s * 1e9)} {round(waited_s * 1e9)} 4711\n"


def process(number, gb=128, pages_kb=4, uuid=None, pins=None):
    """Return the files of a VM's process: cgroups of version 2, vhost as a task.

    :param pins: the CPU of each vCPU
    """
    pid, node = FIRST_PID + 100 * number, number - 1
    pins = pins or own_cpus(number)
    path, own = f"/proc/{pid}", format_cpus(pins)
    scope = f"/machine.slice/machine-qemu\\x2d{number}.scope"
    files = {
        f"{path}/comm": "qemu-system-x86\n",
        f"{path}/cmdline": "\0".join(
            (
                "/usr/bin/qemu-system-x86_64",
                "-name",
                "guest=i,debug-threads=on",
                "-uuid",
                uuid or UUIDS[number - 1],
                "-machine",
                "pc-q35-9.2,usb=off,dump-guest-core=off",
                "-accel",
                "kvm",
                "-cpu",
                "Cascadelake-Server,ss=on,hypervisor=on,hle=off,rtm=off",
                "-smp",
                "20,sockets=20,dies=1,cores=1,threads=1",
                "",
            )
        ),
        f"{path}/status": status("qemu-system-x86", own, node),
        f"{path}/stat": process_stat(pid, "qemu-system-x86"),
        f"{path}/cgroup": f"0::{scope}/libvirt/emulator\n",
        f"{path}/numa_maps": numa_maps({node: gb * _GB}, pages_kb),
    }
    names = {pid: "qemu-system-x86", pid + 1: "IO iothread1", pid + 2: f"vhost-{pid}"}
    # One for each queue.
    names |= {pid + 40 + queue: f"vhost-{pid}" for queue in range(1, 20)}
    names |= {pid + 10 + vcpu: f"CPU {vcpu}/KVM" for vcpu in range(20)}
    groups = {"emulator": own}
    for tid, name in names.items():
        vcpu = tid - pid - 10
        cpus = str(pins[vcpu]) if 0 <= vcpu < 20 else own
        group = f"vcpu{vcpu}" if 0 <= vcpu < 20 else "emulator"
        groups[group] = cpus
        task = f"{path}/task/{tid}"
        files |= {
            f"{task}/comm": f"{name}\n",
            f"{task}/stat": task_stat(tid, name),
            f"{task}/status": status(name, cpus, node),
            f"{task}/cgroup": f"0::{scope}/libvirt/{group}\n",
            f"{task}/schedstat": schedstat(100.0, 0.5),
        }
    for group, cpus in groups.items():
        base = f"{CGROUP}{scope}/libvirt/{group}"
        files |= cgroup(base, threaded=True) | {
            f"{base}/cpuset.cpus": f"{cpus}\n",
            f"{base}/cpuset.cpus.effective": f"{cpus}\n",
            f"{base}/cpuset.mems": f"{node}\n",
            f"{base}/cpuset.mems.effective": f"{node}\n",
        }
    for above in ("/machine.slice", scope, f"{scope}/libvirt"):
        files |= cgroup(f"{CGROUP}{above}")
    return files


PROVIDER_YAML = """\
meta:
  schema_version: '1.0'
providers:
- identification:
    uuid: $COMPUTE_NODE
  inventories:
    additional:
    - CUSTOM_PERFVM_SLOT:
        total: 2
        reserved: 0
        min_unit: 1
        max_unit: 1
        step_size: 1
        allocation_ratio: 1.0
  traits:
    additional:
    - CUSTOM_PERFVM_HIGH_PERFORMANCE
"""
CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
PROVIDER_PATH = "/etc/nova/provider_config/provider.yaml"


def topology(nodes=2, cores=20, threads=1, gb=256):
    """Return the files of a host's CPUs and memory, numbered as Linux does."""
    count = nodes * cores
    files = {
        f"{CPU}/online": f"0-{count * threads - 1}\n",
        f"{CPU}/present": f"0-{count * threads - 1}\n",
        f"{NODE}/online": f"0-{nodes - 1}\n",
        f"{NODE}/has_memory": f"0-{nodes - 1}\n",
    }
    for cpu in range(count * threads):
        siblings = [cpu % count + n * count for n in range(threads)]
        base = f"{CPU}/cpu{cpu}"
        files[f"{base}/topology/thread_siblings_list"] = f"{format_cpus(siblings)}\n"
        files |= {
            f"{base}/cpufreq/scaling_governor": "performance\n",
            f"{base}/cpufreq/scaling_driver": "intel_pstate\n",
            f"{base}/cpufreq/scaling_max_freq": "3900000\n",
            f"{base}/cpufreq/cpuinfo_max_freq": "3900000\n",
            f"{base}/cpufreq/base_frequency": "2500000\n",
            f"{base}/cpufreq/energy_performance_preference": "performance\n",
            f"{base}/thermal_throttle/core_throttle_count": "3\n",
        }
    for node in range(nodes):
        first = range(20 * node, 20 * node + 20)
        # The last cores are the host's own, so that VMs have 0-19 and 20-39.
        own = [*first, *range(40 + node * (cores - 20), 40 + (node + 1) * (cores - 20))]
        cpus = [cpu + n * count for n in range(threads) for cpu in own]
        files[f"{NODE}/node{node}/cpulist"] = f"{format_cpus(cpus)}\n"
        files[f"{NODE}/node{node}/meminfo"] = (
            f"Node {node} MemTotal:       {gb * _GB} kB\n"
            f"Node {node} MemFree:        {_GB} kB\n"
        )
    return files


def host(vms=2, cores=20, **pages):
    """Return what is collected on a host without a fault, under load.

    Its NICs interrupt CPUs of the VMs, as these own all that there are.

    :param cores: of a node; those from the 21st on are the host's own, CPUs 40 and 41
    :param pages: pages_kb of the VMs' huge pages
    """
    count = 2 * cores
    files = topology(cores=cores)
    net = "/sys/class/net"
    links = {f"{net}/lo": "../../devices/virtual/net/lo"}
    rows, offloads = [], {}
    for number in (0, 1):
        name, cpu = f"eth{number}", 40 + number if cores > 20 else 20 * number
        files |= {
            f"{net}/{name}/operstate": "up\n",
            f"{net}/{name}/device/numa_node": f"{number}\n",
            f"{net}/{name}/speed": "25000\n",
            f"{net}/{name}/mtu": "9000\n",
            f"/proc/irq/{24 + number}/effective_affinity_list": f"{cpu}\n",
            f"/proc/irq/{24 + number}/smp_affinity_list": "40-41\n"
            if cores > 20
            else "0-39\n",
        }
        slot = f"0000:{number}0:03.0"
        offloads[f"ethtool -k {name}"] = CommandOutput(0, OFFLOADS)
        links |= {
            f"{net}/{name}": f"../../devices/pci0000:{number}0/{slot}/net/{name}",
            f"{net}/{name}/device": f"../../../{slot}",
            f"{net}/{name}/device/driver": "../../../../bus/pci/drivers/mlx5_core",
        }
        rows.append((f"mlx5_comp0@pci:{slot}", cpu))
    looks = [
        interrupts([(name, {cpu: fired}) for name, cpu in rows], count)
        for fired in (5000, 90000)
    ]
    own = "nohz_full=0-39 rcu_nocbs=0-39 isolcpus=managed_irq,0-39"
    nics = ("eth0", "eth1", *(f"tap{number}" for number in range(1, vms + 1)))
    counters = [
        {
            "/proc/interrupts": looks[look],
            "/proc/stat": stat(count, 1000 * look),
            "/proc/softirqs": softirqs(count, 1000 + 50000 * look),
            "/proc/vmstat": f"nr_free_pages 1\nnuma_pages_migrated {7000 + look}\n",
            "/proc/net/softnet_stat": softnet(count, 1000 + 90000 * look),
            **nic_statistics(nics, 10**9 + 10**6 * look),
        }
        for look in (0, 1)
    ]
    files |= (
        counters[0]
        | VULNERABILITIES
        | {
            "/proc/cmdline": "BOOT_IMAGE=/vmlinuz quiet numa_balancing=disable "
            f"{own if cores > 20 else ''}\n",
            "/proc/cpuinfo": cpuinfo(OF_HOST),
            "/proc/sys/kernel/sched_rt_runtime_us": "950000\n",
            "/proc/sys/kernel/numa_balancing": "0\n",
            "/proc/sys/kernel/random/boot_id": "b0000000-0000-4000-8000-000000000000\n",
            "/sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
            "/sys/class/dmi/id/product_name": "PowerEdge R640\n",
            CLOCK: "tsc\n",
            f"{CPU}/intel_pstate/no_turbo": "0\n",
            f"{CPU}/intel_pstate/max_perf_pct": "100\n",
            f"{CPU}/smt/control": "off\n",
            "/sys/devices/system/edac/mc/mc0/ce_count": "0\n",
            "/sys/module/kvm_intel/parameters/ept": "Y\n",
            "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            "/sys/kernel/mm/ksm/run": "0\n",
            "/sys/kernel/mm/ksm/merge_across_nodes": "1\n",
            "/sys/kernel/mm/ksm/pages_sharing": "0\n",
            "/etc/tuned/active_profile": "cpu-partitioning\n",
            "/etc/nova/nova.conf": "[compute]\ncpu_dedicated_set = 0-39\n",
            PROVIDER_PATH: PROVIDER_YAML,
        }
    )
    commands = offloads | {
        "virsh -r list --all --uuid": CommandOutput(
            0, "".join(f"{uuid}\n" for uuid in UUIDS[:vms]) + "\n"
        )
    }
    for number in range(1, vms + 1):
        files |= process(number, pages_kb=pages.get("pages_kb") or 4)
        commands[f"virsh -r dumpxml {UUIDS[number - 1]}"] = CommandOutput(
            0, domain_xml(number, **pages)
        )
        line = f"virsh -r schedinfo {UUIDS[number - 1]}"
        commands[line] = CommandOutput(0, SCHEDINFO)
    return Collected(
        kind="host",
        hostname="compute1",
        taken_at="2026-11-22T10:00:00+00:00",
        interval_s=10.0,
        files=files,
        later={
            **counters[1],
            **{p: text for p, text in files.items() if p.endswith("_count")},
            # A tenth of the time between the looks, of which no thread waited 1 %.
            **{p: schedstat(101.0, 0.51) for p in files if p.endswith("/schedstat")},
            **{p: t for p, t in files.items() if p.endswith((".stat", ".events"))},
        },
        links=links,
        commands=commands,
    )


def roomy(vms=2, **pages):
    """Return a host without a fault that has a core of each node for itself."""
    return host(vms, cores=21, **pages)


def of_domains(hostname, described, taken_at):
    """Return what is collected on a host that runs domains as Nova described them.

    :param described: {UUID: XML}
    """
    files = {}
    listed = "".join(f"{uuid}\n" for uuid in described)
    commands = {"virsh -r list --all --uuid": CommandOutput(0, listed)}
    for number, (uuid, xml) in enumerate(described.items(), 1):
        root = ET.fromstring(xml)
        # As libvirt numbers those that run.
        root.set("id", str(number))
        text = ET.tostring(root, encoding="unicode")
        commands[f"virsh -r dumpxml {uuid}"] = CommandOutput(0, text)
        cpus = {
            int(pin.get("vcpu")): int(pin.get("cpuset"))
            for pin in root.findall("cputune/vcpupin")
        }
        if cpus:
            runs = [cpus[vcpu] for vcpu in sorted(cpus)]
            files |= process(number, uuid=uuid, pins=runs)
    return Collected("host", hostname, taken_at, 0.0, files, commands=commands)


def as_json(collected):
    """Return the text of the file that ``host collect`` writes."""
    commands = {line: out._asdict() for line, out in collected.commands.items()}
    document = asdict(collected) | {"schema_version": "1.0", "commands": commands}
    return json.dumps(document)


def with_domains(collected, **xml):
    """Return it with other XML of VMs: ``vm1=...``; those beyond 2 are added."""
    commands = dict(collected.commands)
    known = commands["virsh -r list --all --uuid"].stdout.split()
    for name, text in xml.items():
        uuid = UUIDS[int(name.removeprefix("vm")) - 1]
        commands[f"virsh -r dumpxml {uuid}"] = CommandOutput(0, text)
        known += [] if uuid in known else [uuid]
    listed = "".join(f"{uuid}\n" for uuid in known)
    commands["virsh -r list --all --uuid"] = CommandOutput(0, listed)
    return replace(collected, commands=commands)


def edited(collected, number, *changes):
    """Return it with texts of a VM's XML replaced: pairs of old and new."""
    xml = collected.commands[f"virsh -r dumpxml {UUIDS[number - 1]}"].stdout
    for old, new in changes:
        if old not in xml:
            message = f"{old!r} is not in the XML"
            raise AssertionError(message)
        xml = xml.replace(old, new)
    return with_domains(collected, **{f"vm{number}": xml})


def renamed(collected, number, name):
    """Return it with another name of a VM, for libvirt and Nova."""
    old = (f"<name>instance-{number:08x}<", f"<nova:name>rgw{number}<")
    new = (f"<name>{escape(name)}<", f"<nova:name>{escape(name)}<")
    return edited(collected, number, *zip(old, new, strict=True))


def server(number, **changes):
    """Return a server of Nova that agrees with libvirt."""
    pins = dict(enumerate(own_cpus(number)))
    cell = ServerCell(number - 1, frozenset(pins), 128 * 1024, pins)
    return replace(
        Server(
            id=UUIDS[number - 1],
            name=f"rgw{number}",
            host="compute1",
            status="ACTIVE",
            vcpus=20,
            extra_specs=HIGH,
            pinned=True,
            memory_mb=128 * 1024,
            flavor="hp.20c.128g",
            cells=(cell,),
        ),
        **changes,
    )


def snapshot(*servers, traits=("CUSTOM_PERFVM_HIGH_PERFORMANCE",), slots=2, cells=True):
    """Return a snapshot of a cloud with the host, by default with both VMs."""
    total = Inventory(total=slots, max_unit=1)
    shown = tuple(
        HostCell(n, frozenset(), frozenset(range(20 * n, 20 * n + 20)), 256 * 1024)
        for n in (0, 1)
    )
    return Snapshot(
        taken_at="2026-11-22T10:01:00+00:00",
        hosts=(
            ComputeHost(
                host="compute1",
                node="compute1.example.org",
                provider=PROVIDER,
                service="s1",
                cells=shown,
                cells_source=NOVA_DATABASE if cells else ASSUMED,
            ),
            ComputeHost(host="compute2", node="compute2", provider="p2", service="s2"),
        ),
        providers=(
            Provider(
                uuid=PROVIDER,
                name="compute1.example.org",
                generation=3,
                inventories={"CUSTOM_PERFVM_SLOT": total} if slots else {},
                traits=frozenset({"HW_CPU_X86_AVX2", *traits}),
            ),
        ),
        servers=servers or (server(1), server(2)),
    )
