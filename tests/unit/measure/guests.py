# SPDX-License-Identifier: Apache-2.0
"""What is collected in guests, with faults or without."""

import random
from dataclasses import replace

from nova_perfvm.measure.collect.collected import Collected, CommandOutput

CHANNELS = """\
Channel parameters for {nic}:
Pre-set maximums:
RX:		n/a
TX:		n/a
Other:		n/a
Combined:	{maximum}
Current hardware settings:
RX:		n/a
TX:		n/a
Other:		n/a
Combined:	{current}
"""
OFFLOADS = """\
Features for eth0:
rx-checksumming: on [fixed]
tx-checksumming: on
scatter-gather: on
tcp-segmentation-offload: on
generic-receive-offload: on
large-receive-offload: off [fixed]
"""
TCP = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid"
    "  timeout inode\n"
)
# The kernel's new form, and those of the chips of other kernels and machines.
NEW = "PCI-MSIX-0000:00:03.0 {hwirq:3}-edge      {name}"
FORMS = (
    NEW,
    "PCI-MSI {hwirq}-edge      {name}",
    "PCI-MSI-edge      {name}",
    "IR-PCI-MSIX-0000:00:03.0 {hwirq:3}-edge      {name}",
    "  ITS-MSI {hwirq} Edge      {name}",
    "ITS-PCI-MSIX-0000:00:03.0 {hwirq:3} Edge      {name}",
)


def interrupts(rows, cpus=20, form=NEW):
    """Return /proc/interrupts: rows of a name and {CPU: count}."""
    numbers = list(range(cpus)) if isinstance(cpus, int) else cpus
    lines = ["           " + "".join(f"{f'CPU{cpu}':<11}" for cpu in numbers)]
    for irq, (name, counts) in enumerate(rows, 24):
        columns = "".join(f"{counts.get(cpu, 0):>11}" for cpu in numbers)
        kind = form.format(hwirq=irq - 24, name=name)
        lines.append(f"{irq:>4}:{columns}  {kind}")
    ticks = "".join(f"{1000:>11}" for _ in numbers)
    lines += [f"NMI:{ticks}   Non-maskable interrupts", "ERR:          0", "MIS: 0"]
    return "\n".join(lines) + "\n"


# What Linux names of a Cascade Lake, and what only one of the two sides has.
FLAGS = """\
fpu vme de pse tsc msr pae cx8 apic sep mtrr pge cmov pat clflush mmx fxsr sse sse2 ss
syscall nx pdpe1gb rdtscp lm constant_tsc rep_good nopl pni pclmulqdq ssse3 fma cx16
pcid sse4_1 sse4_2 x2apic movbe popcnt tsc_deadline_timer aes xsave avx f16c rdrand
lahf_lm abm 3dnowprefetch invpcid_single ssbd ibrs ibpb stibp ibrs_enhanced fsgsbase
tsc_adjust bmi1 avx2 smep bmi2 erms invpcid avx512f avx512dq rdseed adx smap
clflushopt clwb avx512cd avx512bw avx512vl xsaveopt xsavec xgetbv1 arat pku ospke
avx512_vnni md_clear arch_capabilities
"""
# Of a host; a guest says less of SMT, and of what KVM does.
VULNERABILITIES = {
    f"/sys/devices/system/cpu/vulnerabilities/{name}": f"{text}\n"
    for name, text in (
        ("itlb_multihit", "KVM: Mitigation: Split huge pages"),
        ("mds", "Mitigation: Clear CPU buffers; SMT disabled"),
        ("meltdown", "Not affected"),
        ("spectre_v2", "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional"),
        ("tsx_async_abort", "Mitigation: TSX disabled"),
        ("gather_data_sampling", "Mitigation: Microcode"),
    )
}
OF_GUEST = {
    "itlb_multihit": "KVM: Mitigation: VMX unsupported",
    "mds": "Mitigation: Clear CPU buffers; SMT Host state unknown",
    "tsx_async_abort": "Not affected",
    "gather_data_sampling": "Unknown: Dependent on hypervisor status",
}
OF_HOST = "dts acpi ht tm pbe art arch_perfmon pebs bts nonstop_tsc aperfmperf dtes64 "
OF_HOST += "monitor ds_cpl vmx est tm2 xtpr pdcm dca epb cat_l3 intel_ppin mba ida pln"


def cpuinfo(more="", model="Xeon Gold 6248", without=()):
    """Return /proc/cpuinfo of one CPU.

    :param more: other flags
    :param without: flags that it has not
    """
    flags = [flag for flag in f"{FLAGS} {more}".split() if flag not in without]
    return (
        f"processor\t: 0\nmodel name\t: {model}\nmicrocode\t: 0x5003707\n"
        f"flags\t\t: {' '.join(flags)}\n\n"
    )


def queue_rows(pairs, counts, device="virtio0"):
    """Return the rows of a virtio-net device.

    :param counts: of a direction's queue: {CPU: count}
    """
    rows = [(f"{device}-config", {})]
    for queue in range(pairs):
        rows += [
            (f"{device}-{direction}.{queue}", counts(direction, queue))
            for direction in ("input", "output")
        ]
    return rows


def connections(number, state="01", remote="0A00020A"):
    """Return rows of /proc/net/tcp."""
    return "".join(
        f"{i:4}: 0A00000A:{1024 + i:04X} {remote}:0050 {state} 00000000:00000000 "
        f"00:00000000 00000000  1000        0 {i} 1 0000000000000000\n"
        for i in range(number)
    )


def stat(cpus, stolen=0, more=0, idle=500, busy=0.5):
    """Return /proc/stat of CPUs that lost so many ticks, CPU 3 more.

    :param idle: ticks since 500, of which they were busy for a share
    """
    lines = [f"cpu  1 0 1 1 0 0 0 {stolen} 0 0"]
    ran = round((idle - 500) * busy)
    for cpu in range(cpus):
        lost = stolen + (more if cpu == 3 else 0)
        lines.append(
            f"cpu{cpu} {1000 + ran + lost} 0 0 {idle - ran - 2 * lost} 0 0 0 {lost} 0 0"
        )
    return "\n".join([*lines, "intr 1 2", "ctxt 5", "btime 1"]) + "\n"


def mask(cpus):
    """Return a mask as the kernel writes it."""
    bits = sum(1 << cpu for cpu in cpus)
    words = []
    while bits or not words:
        words.append(f"{bits & 0xFFFFFFFF:08x}")
        bits >>= 32
    return ",".join(reversed(words)) + "\n"


def spread(flows, queues, seed=7):
    """Return how often the queues' interrupts fired with equal connections."""
    draw = random.Random(seed)
    fired = [0] * queues
    for _ in range(flows):
        fired[draw.randrange(queues)] += 10_000
    return fired


def guest(vcpus=20, present=20, enabled=None, flows=64, place=None, fired=None):
    """Return what is collected in a guest, by default one without a fault.

    :param place: {queue: CPU}, by default each on its own
    :param fired: interrupts of each queue between the looks
    """
    enabled = min(present, vcpus) if enabled is None else enabled
    place = place or (lambda queue: queue % vcpus)
    fired = fired or spread(flows, enabled)

    def counts(look):
        def of(_direction, queue):
            more = fired[queue] if look and queue < enabled else 0
            return {place(queue): 1000 + more}

        return of

    looks = [
        interrupts(
            [*queue_rows(present, counts(look)), ("virtio1-req.0", {0: 5})], vcpus
        )
        for look in (0, 1)
    ]
    rest = "00000000 " * 9
    softnet = [
        "".join(f"{n:08x} 0 0 {rest}{cpu:08x} 0 0\n" for cpu in range(vcpus))
        for n in (1000, 90000)
    ]
    net, disk = "/sys/class/net/eth0", "/sys/block/vda"
    cpu, node = "/sys/devices/system/cpu", "/sys/devices/system/node"
    clock = "/sys/devices/system/clocksource/clocksource0"
    files = {
        **VULNERABILITIES,
        **{f"{cpu}/vulnerabilities/{n}": f"{text}\n" for n, text in OF_GUEST.items()},
        "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "/proc/interrupts": looks[0],
        "/proc/stat": stat(vcpus, 1),
        "/proc/net/softnet_stat": softnet[0],
        "/proc/net/tcp": TCP + connections(flows),
        f"{cpu}/online": f"0-{vcpus - 1}\n",
        f"{node}/online": "0\n",
        f"{node}/has_memory": "0\n",
        f"{clock}/current_clocksource": "kvm-clock\n",
        f"{clock}/available_clocksource": "kvm-clock tsc acpi_pm\n",
        f"{net}/operstate": "up\n",
        f"{net}/mtu": "1500\n",
        f"{net}/statistics/rx_packets": "1000000000\n",
        f"{net}/statistics/rx_dropped": "12\n",
        f"{net}/statistics/tx_packets": "1000000000\n",
        f"{net}/statistics/tx_dropped": "0\n",
        "/proc/cmdline": "BOOT_IMAGE=/vmlinuz root=LABEL=cloud console=ttyS0\n",
        "/sys/class/net/lo/operstate": "unknown\n",
        f"{disk}/queue/scheduler": "[none] mq-deadline kyber\n",
    }
    for number in range(vcpus):
        files[f"{cpu}/cpu{number}/topology/thread_siblings_list"] = f"{number}\n"
        files[f"{disk}/mq/{number}/cpu_list"] = f"{number}\n"
    for queue in range(enabled):
        files[f"{net}/queues/rx-{queue}/rps_cpus"] = mask([])
        if enabled > 1:
            sends = [c for c in range(vcpus) if c % enabled == queue]
            files[f"{net}/queues/tx-{queue}/xps_cpus"] = mask(sends)
    for queue in range(present):
        for irq in (25 + 2 * queue, 26 + 2 * queue):
            files[f"/proc/irq/{irq}/effective_affinity_list"] = f"{place(queue)}\n"
            files[f"/proc/irq/{irq}/smp_affinity_list"] = f"{place(queue)}\n"
    channels = CHANNELS.format(nic="eth0", maximum=present, current=enabled)
    return Collected(
        kind="guest",
        hostname="vm1",
        taken_at="2026-11-22T10:00:00+00:00",
        interval_s=15.0,
        files=files,
        later=files
        | {
            "/proc/interrupts": looks[1],
            "/proc/stat": stat(vcpus, 1, idle=2000),
            f"{net}/statistics/rx_packets": "1001000000\n",
            "/proc/net/softnet_stat": softnet[1],
        },
        links={
            "/sys/class/net/lo": "../../devices/virtual/net/lo",
            net: "../../devices/pci0000:00/0000:00:03.0/virtio0/net/eth0",
            f"{net}/device": "../../../virtio0",
            f"{net}/device/driver": "../../../../bus/virtio/drivers/virtio_net",
            disk: "../devices/pci0000:00/0000:00:04.0/virtio1/block/vda",
            f"{disk}/device/driver": "../../../../bus/virtio/drivers/virtio_blk",
        },
        commands={
            "ethtool -l eth0": CommandOutput(0, channels),
            "ethtool -k eth0": CommandOutput(0, OFFLOADS),
        },
        unread={"/proc/1/numa_maps": "permission denied"},
    )


def having(collected, files=None, later=None, links=None, commands=None):
    """Return it with some parts exchanged; those that are None are left out.

    Files that are no counters are the same at both looks.
    """

    def merged(old, new):
        joined = {**old, **(new or {})}
        return {key: value for key, value in joined.items() if value is not None}

    return replace(
        collected,
        files=merged(collected.files, files),
        later=merged(collected.later, {**(files or {}), **(later or {})}),
        links=merged(collected.links, links),
        commands=merged(collected.commands, commands),
    )


def only(collected, *paths):
    """Return it with so much of its files, at one look, and nothing else."""
    files = {path: collected.files[path] for path in paths}
    return replace(collected, files=files, later={}, links={}, commands={})


def ly():
    """Return the table of LY's article: one look, 28 columns, old names."""
    rows = [
        ("virtio0-config", {}),
        ("virtio0-input.0", {0: 9176864, 15: 3676790525, 16: 401551873}),
        ("virtio0-output.0", {0: 2, 16: 1285361, 17: 18874}),
        ("virtio1-config", {}),
        ("virtio1-req.0", {0: 9177, 18: 112894163, 19: 1340489}),
    ]
    text = interrupts(rows, 28, "PCI-MSI-edge      {name}")
    return Collected(
        kind="guest",
        hostname="rgw1",
        taken_at="2026-11-22T10:00:00+00:00",
        files={"/proc/interrupts": text},
    )
