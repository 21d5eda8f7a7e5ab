# SPDX-License-Identifier: Apache-2.0
"""Harmless variations of machines and their software: {name: edit of a case}."""

from dataclasses import replace

from tests.unit.measure import guests, hosts
from tests.unit.measure.prove import sound
from tests.unit.measure.prove.strangers_edits import (
    HOSTS,
    VMS,
    attribute,
    changed,
    class_with,
    figures,
    in_guests,
    in_xml,
    noted,
    on_host,
    pid,
    scope,
    together,
)

CPU, NODE, NET, GB = hosts.CPU, hosts.NODE, "/sys/class/net", 2**20
NIC = "<driver name='vhost' queues='20'/>"
DRIVER = "<driver name='qemu' type='raw' cache='none' io='native'/>"
_OFTEN = (
    *("rx_packets", "tx_packets", "rx_dropped", "tx_dropped", "rx_errors"),
    *("tx_errors", "rx_fifo_errors", "rx_missed_errors"),
)
# /proc/cpuinfo of other machines, to be formatted with the flags.
_EPYC_FLAGS = """\
fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr
sse sse2 syscall nx mmxext fxsr_opt pdpe1gb rdtscp lm constant_tsc rep_good nopl
pni pclmulqdq ssse3 fma cx16 pcid sse4_1 sse4_2 x2apic movbe popcnt aes xsave avx
f16c rdrand lahf_lm cmp_legacy svm cr8_legacy abm sse4a misalignsse 3dnowprefetch osvw
topoext perfctr_core ibrs ibpb stibp vmmcall fsgsbase bmi1 avx2 smep bmi2 erms invpcid
avx512f avx512dq rdseed adx smap avx512ifma clflushopt clwb avx512cd sha_ni avx512bw
avx512vl xsaveopt xsavec xgetbv1 xsaves avx512_bf16 clzero xsaveerptr wbnoinvd arat npt
nrip_save avx512vbmi umip pku ospke avx512_vbmi2 gfni vaes vpclmulqdq avx512_vnni
avx512_bitalg avx512_vpopcntdq la57 rdpid fsrm
"""
_EPYC_HOST = (
    "ht nonstop_tsc extd_apicid aperfmperf rapl monitor extapic ibs skinit wdt "
)
_EPYC_HOST += "tce perfctr_nb bpext perfctr_llc mwaitx cpb cat_l3 cdp_l3 hw_pstate mba "
_EPYC_HOST += "cqm rdt_a irperf lbrv svm_lock tsc_scale vmcb_clean flushbyasid "
_EPYC_HOST += "decodeassists pausefilter pfthreshold avic v_vmsave_vmload vgif "
_ARM = """\
processor\t: 0
BogoMIPS\t: 50.00
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid \
asimdrdm lrcpc dcpop asimddp ssbs
CPU implementer\t: {0}
CPU architecture: 8
CPU variant\t: {1}
CPU part\t: {2}
CPU revision\t: 1

"""


def _cpus(text_of_host, text_of_guests, model):
    """Return an edit to another model of CPUs."""
    return together(
        on_host({"/proc/cpuinfo": text_of_host}),
        in_guests({"/proc/cpuinfo": text_of_guests}),
        figures(attribute(cpu_model=model), who=(*HOSTS, *VMS)),
    )


def _clocks(driver, keep=()):
    """Return an edit to another driver of CPUs' clocks, which has fewer files."""
    absent = {
        f"{CPU}/cpu*/cpufreq/{name}": None
        for name in ("base_frequency", "energy_performance_preference")
        if name not in keep
    }
    return on_host(
        {
            f"{CPU}/cpu*/cpufreq/scaling_driver": f"{driver}\n",
            f"{CPU}/intel_pstate/no_turbo": None,
            f"{CPU}/intel_pstate/max_perf_pct": None,
            "/sys/module/kvm_intel/parameters/ept": None,
            **absent,
        }
    )


def _epyc(driver, model="AMD EPYC 9354 32-Core Processor", keep=()):
    rows = (
        f"processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\n"
        f"model name\t: {model}\nmicrocode\t: 0xa101148\nflags\t\t: "
    )
    flags = " ".join(_EPYC_FLAGS.split())
    return together(
        _cpus(
            f"{rows}{flags} {_EPYC_HOST}\n\n", f"{rows}{flags} hypervisor\n\n", model
        ),
        _clocks(driver, keep),
        on_host(
            {
                "/sys/module/kvm_amd/parameters/npt": "1\n",
                f"{CPU}/cpu*/thermal_throttle/core_throttle_count": None,
                "/sys/class/dmi/id/product_name": "PowerEdge R7625\n",
                f"{CPU}/cpufreq/boost": "1\n",
            }
        ),
        in_xml(
            (">Cascadelake-Server<", ">EPYC-Genoa<"),
            ("<vendor>Intel<", "<vendor>AMD<"),
        ),
        on_host(
            {
                f"/proc/{pid(n)}/cmdline": changed("Cascadelake-Server", "EPYC-Genoa")
                for n in (1, 2)
            }
        ),
    )


def _arm(implementer, variant, part, vendor, product):
    text = _ARM.format(implementer, variant, part)
    return together(
        _cpus(text, text, f"{implementer} {part}"),
        _clocks("cppc_cpufreq"),
        on_host(
            {
                f"{CPU}/cpu*/thermal_throttle/core_throttle_count": None,
                "/sys/class/dmi/id/sys_vendor": f"{vendor}\n",
                "/sys/class/dmi/id/product_name": f"{product}\n",
                hosts.CLOCK: "arch_sys_counter\n",
                f"{CPU}/smt/control": "notsupported\n",
            }
        ),
        in_guests({hosts.CLOCK: "arch_sys_counter\n"}),
        in_xml(
            ("arch='x86_64' machine='pc-q35-9.2'", "arch='aarch64' machine='virt-9.2'"),
            (
                "<features><acpi/><apic/></features>",
                "<features><acpi/><gic version='3'/></features>",
            ),
            (
                (
                    "<cpu mode='custom' match='exact' check='full'>\n"
                    "    <model fallback='forbid'>Cascadelake-Server</model>\n"
                    "    <vendor>Intel</vendor>\n"
                    "    <feature policy='require' name='ss'/>\n"
                    "    <feature policy='require' name='hypervisor'/>\n"
                    "    <feature policy='disable' name='hle'/>\n"
                    "    <feature policy='disable' name='rtm'/>\n"
                ),
                "<cpu mode='host-passthrough' check='none'>\n",
            ),
            ("/usr/bin/qemu-system-x86_64", "/usr/bin/qemu-system-aarch64"),
        ),
        *(
            on_host(
                {
                    f"/proc/{pid(n)}/cmdline": lambda text: (
                        text.replace("qemu-system-x86_64", "qemu-system-aarch64")
                        .replace("pc-q35-9.2,usb=off", "virt-9.2,usb=off,gic-version=3")
                        .replace(
                            "Cascadelake-Server,ss=on,hypervisor=on,hle=off,rtm=off",
                            "host",
                        )
                    ),
                    f"/proc/{pid(n)}/comm": "qemu-system-aar\n",
                }
            )
            for n in (1, 2)
        ),
    )


def pages(kb, declared):
    """Return an edit to huge pages, as the class declares them."""

    def edit(case):
        class_with(mem_page_size=declared)(case)
        case.host = hosts.host(pages_kb=kb)
        on_host(sound.identity("compute1"), before=False)(case)
        for node in (0, 1):
            base = f"{NODE}/node{node}/hugepages/hugepages-{kb}kB"
            count = 128 * GB // kb
            on_host({f"{base}/nr_hugepages": f"{count}\n"})(case)
            on_host({f"{base}/free_hugepages": "0\n"})(case)
        thp = {f"/proc/{pid(n)}/cmdline": _preallocated for n in (1, 2)}
        on_host(thp)(case)

    return edit


def _preallocated(text):
    return text.replace(
        "-smp\0",
        '-object\0{"qom-type":"memory-backend-file","id":"ram-node0",'
        '"prealloc":true,"host-nodes":[0],"policy":"bind"}\0-smp\0',
    )


def _roomy(more=()):
    """Return an edit to hosts of 2x21, whose last cores are the host's own."""

    def edit(case):
        case.policy = sound.policy_document(shape="2x21")
        case.host = hosts.roomy()
        on_host(sound.identity("compute1"), before=False)(case)
        _as_seen(case)
        noted(affinity={"node0": "0-19,40", "node1": "20-39,41"})(case)
        for one in more:
            one(case)

    return edit


def _as_seen(case):
    """Let the host have been before the run as it was collected after it."""
    collected = {
        path: text
        for pattern in sound.STATE
        for path, text in case.host.matching(pattern).items()
    }
    for who in HOSTS:
        seen = case.run["sessions"][0]["targets"][who]["collected"]
        seen["files"] = dict(collected)


def _four_nodes(case):
    """Let the host have four nodes of 20, of which two have VMs."""
    case.policy = sound.policy_document(shape="4x20")
    looks = [
        {
            "/proc/interrupts": _fired((40, 60), 80)[look],
            "/proc/stat": hosts.stat(80, 1000 * look),
            "/proc/softirqs": hosts.softirqs(80, 1000 + 50000 * look),
            "/proc/net/softnet_stat": hosts.softnet(80, 1000 + 90000 * look),
        }
        for look in (0, 1)
    ]
    files = {**case.host.files, **hosts.topology(nodes=4, gb=256), **looks[0]}
    counts = {p: t for p, t in files.items() if p.endswith("_throttle_count")}
    case.host = replace(
        case.host, files=files, later={**case.host.later, **counts, **looks[1]}
    )
    on_host(sound.identity("compute1"), before=False)(case)
    for irq, cpu in ((24, 40), (25, 60)):
        on_host({f"/proc/irq/{irq}/effective_affinity_list": f"{cpu}\n"})(case)
        on_host({f"/proc/irq/{irq}/smp_affinity_list": "40-79\n"})(case)
    own = "quiet isolcpus=managed_irq,0-39 nohz_full=0-39 rcu_nocbs=0-39"
    on_host({"/proc/cmdline": changed("quiet", own)})(case)
    _as_seen(case)


def _fired(cpus, columns):
    """Return what NICs interrupted at both looks, each a CPU."""
    names = [f"mlx5_comp0@pci:0000:{n}0:03.0" for n in (0, 1)]
    return [
        guests.interrupts(
            [(name, {cpu: fired}) for name, cpu in zip(names, cpus, strict=True)],
            columns,
        )
        for fired in (5000, 90000)
    ]


def _powersave(cpus):
    """Return an edit of the governor of CPUs that no VM has, as Nova sets it."""

    def edit(case):
        for cpu in cpus:
            path = f"{CPU}/cpu{cpu}/cpufreq/scaling_governor"
            on_host({path: "powersave\n"})(case)
        figures(attribute(governor="performance powersave"), who=HOSTS)(case)

    return edit


def _asleep(case):
    """Take CPUs that no VM has offline, as Nova does by cpu_power_management."""
    gone = tuple(f"{CPU}/cpu{cpu}/" for cpu in range(40, 80))
    on_host({f"{CPU}/online": "0-39\n", f"{CPU}/offline": "40-79\n"})(case)
    for node in (2, 3):
        on_host({f"{NODE}/node{node}/cpulist": "\n"})(case)
    case.host = replace(
        case.host,
        **{
            look: {
                p: t
                for p, t in getattr(case.host, look).items()
                if not p.startswith(gone)
            }
            for look in ("files", "later")
        },
    )
    for number, look in enumerate(("files", "later")):
        files = {
            "/proc/stat": hosts.stat(40, 1000 * number),
            "/proc/interrupts": _fired((0, 20), 40)[number],
        }
        on_host(files, before=False, look=look)(case)
    for irq, cpu in ((24, 0), (25, 20)):
        on_host({f"/proc/irq/{irq}/effective_affinity_list": f"{cpu}\n"})(case)
        on_host({f"/proc/irq/{irq}/smp_affinity_list": "0-79\n"})(case)
    _as_seen(case)


def _kernels(host, guest):
    return together(
        on_host({"/proc/sys/kernel/osrelease": f"{host}\n"}),
        in_guests({"/proc/sys/kernel/osrelease": f"{guest}\n"}),
        figures(attribute(kernel=host), who=HOSTS),
        figures(attribute(kernel=guest), who=VMS),
    )


def _versions(**of_tools):
    """Return an edit to other versions of tools, the same on all machines."""

    def change(one):
        return replace(one, tool_version=of_tools.get(one.tool, one.tool_version))

    return figures(change, who=(*HOSTS, *VMS))


def _cgroup_v1(case):
    """Move VMs to cgroups of version 1, as on RHEL 8."""
    for number in (1, 2):
        old = scope(number)
        path = f"/machine.slice/machine-qemu\\x2d{number}.scope"
        files = {
            name: text
            for name, text in case.host.files.items()
            if not name.startswith(f"{hosts.CGROUP}/machine.slice")
        }
        groups = {}
        for name, text in case.host.files.items():
            if name.startswith(f"/proc/{pid(number)}/") and name.endswith("/cgroup"):
                group = text.strip().rpartition("/libvirt/")[2]
                groups[group] = case.host.files[f"{old}/{group}/cpuset.cpus"]
                files[name] = (
                    f"11:cpuset:{path}/{group}\n10:cpu,cpuacct:{path}/{group}\n"
                    f"9:blkio:{path}\n8:memory:{path}\n1:name=systemd:{path}\n"
                )
        above = ["/machine.slice", path, *(f"{path}/{group}" for group in groups)]
        for one in above:
            for controller in ("cpu", "cpu,cpuacct"):
                base = f"{hosts.CGROUP}/{controller}{one}"
                files |= {
                    f"{base}/cpu.cfs_quota_us": "-1\n",
                    f"{base}/cpu.shares": "1024\n",
                    f"{base}/cpu.stat": (
                        "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"
                    ),
                }
        for one in above[:2]:
            for way in ("read", "write"):
                for unit in ("bps", "iops"):
                    base = f"{hosts.CGROUP}/blkio{one}"
                    files[f"{base}/blkio.throttle.{way}_{unit}_device"] = ""
        for group, cpus in groups.items():
            base = f"{hosts.CGROUP}/cpuset{path}/{group}"
            files |= {
                f"{base}/cpuset.cpus": cpus,
                f"{base}/cpuset.mems": f"{number - 1}\n",
            }
        case.host = replace(
            case.host, files=_with_v2_of(case.host.files, files, number)
        )
    stats = {p: t for p, t in case.host.files.items() if p.endswith("/cpu.stat")}
    later = {p: t for p, t in case.host.later.items() if p in case.host.files}
    case.host = replace(case.host, later={**later, **stats})


def _with_v2_of(old, new, number):
    """Keep the cgroups of version 2 of VMs whose turn is later."""
    waits = scope(2) if number == 1 else None
    kept = {p: t for p, t in old.items() if waits and p.startswith(waits)}
    return {**new, **kept}


MACHINES = {
    "AMD EPYC with acpi-cpufreq": _epyc("acpi-cpufreq"),
    "AMD EPYC with amd-pstate-epp": _epyc(
        "amd-pstate-epp", keep=("energy_performance_preference",)
    ),
    "AMD EPYC with amd-pstate": _epyc("amd-pstate"),
    "AMD EPYC Turin with microcode of its own": _epyc(
        "amd-pstate-epp", "AMD EPYC 9555 64-Core Processor"
    ),
    "Ampere Altra": _arm("0x41", "0x3", "0xd0c", "WIWYNN", "Mt.Jade Server System"),
    "Kunpeng 920": _arm("0x48", "0x1", "0xd01", "Huawei", "TaiShan 200 (Model 2280)"),
    "Intel with acpi-cpufreq": _clocks("acpi-cpufreq"),
    "Intel with intel_cpufreq": on_host(
        {f"{CPU}/cpu*/cpufreq/scaling_driver": "intel_cpufreq\n"}
    ),
    "microcode of another revision, the same all the time": together(
        on_host({"/proc/cpuinfo": changed("0x5003707", "0x5003801")}),
        in_guests({"/proc/cpuinfo": changed("0x5003707", "0x1")}),
    ),
    "no cpufreq for guests, no frequency driver for the host's turbo": on_host(
        {f"{CPU}/cpu*/cpufreq/base_frequency": None}
    ),
    "a host of 2x21, whose last cores are its own": _roomy(),
    "housekeeping CPUs at powersave": _roomy((_powersave((40, 41)),)),
    "sub-NUMA clusters: four nodes of 20": _four_nodes,
    "AMD EPYC with two nodes a socket": together(_four_nodes, _epyc("amd-pstate-epp")),
    "Nova's cpu_power_management by governors": together(
        _four_nodes, _powersave(range(40, 80))
    ),
    "Nova's cpu_power_management by CPUs' states": together(_four_nodes, _asleep),
    "hyperthreading off in the firmware": on_host(
        {f"{CPU}/smt/control": "notsupported\n", f"{CPU}/smt/active": "0\n"}
    ),
    "hyperthreading forced off": on_host(
        {f"{CPU}/smt/control": "forceoff\n", f"{CPU}/smt/active": "0\n"}
    ),
    "a kernel that knows no smt/control": on_host({f"{CPU}/smt/control": None}),
    "threads never throttled, of no counter": on_host(
        {f"{CPU}/cpu*/thermal_throttle/core_throttle_count": None}
    ),
    "package counters, too": on_host(
        {f"{CPU}/cpu0/thermal_throttle/package_throttle_count": "17\n"}
    ),
    "throttled once before the run": on_host(
        {f"{CPU}/cpu7/thermal_throttle/core_throttle_count": "812\n"}
    ),
    "no ECC counters": on_host({"/sys/devices/system/edac/mc/mc0/ce_count": None}),
    "corrected errors of last year": on_host(
        {"/sys/devices/system/edac/mc/mc0/ce_count": "3\n"}
    ),
    "HPE's server": on_host(
        {
            "/sys/class/dmi/id/sys_vendor": "HPE\n",
            "/sys/class/dmi/id/product_name": "ProLiant DL380 Gen11\n",
        }
    ),
    "Supermicro's server of no product name": on_host(
        {
            "/sys/class/dmi/id/sys_vendor": "Supermicro\n",
            "/sys/class/dmi/id/product_name": "SYS-221H-TNR\n",
        }
    ),
    "CPUs possible beyond those present": on_host({f"{CPU}/possible": "0-127\n"}),
    "memory of nodes differs by what firmware took": on_host(
        {
            f"{NODE}/node1/meminfo": (
                f"Node 1 MemTotal:       {256 * GB - 400000} kB\n"
                f"Node 1 MemFree:        {GB} kB\n"
            )
        }
    ),
    "2 MiB pages as the class declares": pages(2048, "2MB"),
    "1 GiB pages as the class declares": pages(1048576, "1GB"),
    "large pages of 2 MiB": pages(2048, "large"),
    "large pages of 1 GiB": pages(1048576, "large"),
    "small pages as the class declares": class_with(mem_page_size="small"),
}
SOFTWARE = {
    "kernel 5.14 of RHEL 9 on both": _kernels(
        "5.14.0-503.11.1.el9_5.x86_64", "5.14.0-503.11.1.el9_5.x86_64"
    ),
    "kernel 6.8 of Ubuntu on both": _kernels("6.8.0-49-generic", "6.8.0-49-generic"),
    "kernel 6.12 of Debian 13 on both": _kernels(
        "6.12.48+deb13-amd64", "6.12.48+deb13-amd64"
    ),
    "cgroups of version 1": _cgroup_v1,
    "tuned's profile of real time": on_host(
        {"/etc/tuned/active_profile": "realtime-virtual-host\n"}
    ),
    "tuned's profile of hosts": on_host(
        {"/etc/tuned/active_profile": "virtual-host\n"}
    ),
    "tools of RHEL": _versions(sysbench="1.0.20", iperf3="3.9", cyclictest="2.6"),
    "tools of Ubuntu": _versions(iperf3="3.16", cyclictest="2.5"),
    "KSM not built in": on_host(
        {
            "/sys/kernel/mm/ksm/run": None,
            "/sys/kernel/mm/ksm/merge_across_nodes": None,
            "/sys/kernel/mm/ksm/pages_sharing": None,
        }
    ),
    "THP madvise on both sides": in_guests(
        {"/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n"}
    ),
    "THP always on both sides": together(
        on_host(
            {"/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n"}
        ),
        in_guests(
            {"/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n"}
        ),
    ),
    "guest's clock is tsc": in_guests({hosts.CLOCK: "tsc\n"}),
    "guest's kernel line of a cloud image": in_guests(
        {
            "/proc/cmdline": "BOOT_IMAGE=/boot/vmlinuz-6.1.0-26-cloud-amd64 "
            "root=PARTUUID=b6a8 ro console=tty0 console=ttyS0,115200 "
            "earlyprintk=ttyS0,115200 consoleblank=0\n"
        }
    ),
    "guest's kernel line of RHEL": in_guests(
        {
            "/proc/cmdline": "BOOT_IMAGE=(hd0,gpt3)/boot/vmlinuz-5.14.0 root=UUID=aa "
            "ro console=ttyS0,115200n8 no_timer_check net.ifnames=0 "
            "crashkernel=1G-4G:192M,4G-64G:256M,64G-:512M\n"
        }
    ),
    "guest's kernel line of Ubuntu": in_guests(
        {
            "/proc/cmdline": "BOOT_IMAGE=/vmlinuz-6.8.0-49-generic "
            "root=LABEL=cloudimg-rootfs ro console=tty1 console=ttyS0 quiet splash\n"
        }
    ),
    "host's kernel line of isolation": on_host(
        {
            "/proc/cmdline": "BOOT_IMAGE=/vmlinuz quiet numa_balancing=disable "
            "intel_iommu=on iommu=pt default_hugepagesz=1G hugepagesz=1G hugepages=256 "
            "transparent_hugepage=madvise intel_idle.max_cstate=1\n"
        }
    ),
    "mitigations of both sides off": together(
        on_host({"/proc/cmdline": changed("quiet", "quiet mitigations=off")}),
        in_guests(
            {"/proc/cmdline": changed("console=ttyS0", "console=ttyS0 mitigations=off")}
        ),
    ),
    "hosts' names are fully qualified": together(
        lambda case: setattr(
            case, "host", replace(case.host, hostname="compute1.example.org")
        ),
        lambda case: [
            case.run["sessions"][0]["targets"][who].update(
                hostname="compute1.example.org"
            )
            for who in HOSTS
        ],
    ),
    "guests' names in Cyrillic": lambda case: setattr(
        case, "host", hosts.renamed(case.host, 1, "сервер-1")
    ),
}
VARIATIONS = MACHINES | SOFTWARE
