# SPDX-License-Identifier: Apache-2.0
"""Faults that are planted in sound files; none of them may be certified.

Each row has a name, the code that has to name the fault, and what it changes.  A row
whose code is a file's name makes that file unusable.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from nova_perfvm.measure.certify.inputs import UUID
from nova_perfvm.measure.collected import CommandOutput
from nova_perfvm.printable import number_of
from tests.unit.measure import guests, hosts
from tests.unit.measure.certify import sound
from tests.unit.measure.certify.sound import Case

VMS = (1, 2)
# The first, the last and one between.
VCPUS = (0, 7, 19)
CPU, NODE, NET = hosts.CPU, hosts.NODE, "/sys/class/net/eth0"
LIST = "virsh -r list --all --uuid"
GB = 2**20


class Fault(NamedTuple):
    name: str
    code: str
    plant: Callable[[Case], None]


def own(vm):
    return hosts.own_cpus(vm)


def other(vm):
    return own(3 - vm)


def task(vm, number):
    """Return the directory of a thread: 0 QEMU, 1 I/O, 2 vhost, 10 + vCPU."""
    pid = hosts.FIRST_PID + 100 * vm
    return f"/proc/{pid}/task/{pid + number}"


def group(vm, name):
    return f"/sys/fs/cgroup/machine.slice/machine-qemu\\x2d{vm}.scope/libvirt/{name}"


def xml(vm, *changes):
    """Return a fault of texts in a VM's XML."""

    def plant(case):
        case.host = hosts.edited(case.host, vm, *changes)

    return plant


def host(**changes):
    """Return a fault of the host's files; None takes one away."""

    def plant(case):
        case.host = guests.having(case.host, **changes)

    return plant


def guest(vm, **changes):
    """Return a fault of what was collected in a VM."""

    def plant(case):
        case.guests[vm - 1] = guests.having(case.guests[vm - 1], **changes)

    return plant


def other_guest(vm, **changes):
    """Return a guest of another build."""

    def plant(case):
        case.guests[vm - 1] = sound.guest(vm, **changes)

    return plant


def field_of(vm, **changes):
    def plant(case):
        case.guests[vm - 1] = replace(case.guests[vm - 1], **changes)

    return plant


def samples(change):
    """Return a fault of measurements: each by what it becomes, None for nothing."""

    def plant(case):
        changed = [change(one) for one in case.measured]
        case.measured = [one for one in changed if one is not None]

    return plant


def scaled(who, metric, factor, threads=None):
    """Return a fault of a VM's figures in one metric."""
    return samples(
        lambda m: (
            replace(m, value=m.value * factor)
            if (m.who, m.metric) == (who, metric) and threads in {None, m.threads}
            else m
        )
    )


def machine(who, **changes):
    return samples(
        lambda m: (
            replace(m, machine=replace(m.machine, **changes)) if m.who == who else m
        )
    )


def noted(change):
    """Return a fault of what bench run noted."""

    def plant(case):
        change(case.run)

    return plant


def policy(*overrides):
    def plant(case):
        case.policy = sound.policy_document(*overrides)

    return plant


def text(name, change):
    """Return a fault of a file's text; None takes the file away."""

    def plant(case):
        case.texts[name] = change

    return plant


def status(vm, number, cpus, name="x"):
    path = f"{task(vm, number)}/status"
    return host(files={path: hosts.status(name, cpus, vm - 1)})


def cpuset(vm, vcpu, cpus):
    path = f"{group(vm, f'vcpu{vcpu}')}/cpuset.cpus.effective"
    return host(files={path: f"{cpus}\n"})


def _pins():
    """Where libvirt's XML and the kernel put the threads of a VM."""
    for vm in VMS:
        alien = other(vm)
        for vcpu in VCPUS:
            pin = f"vcpupin vcpu='{vcpu}' cpuset='{own(vm)[vcpu]}'"
            at = f"vm{vm} vCPU {vcpu}"
            wrong = (
                ("on the other node", f"{alien[vcpu]}"),
                ("on a CPU of its neighbour", f"{own(vm)[(vcpu + 1) % 20]}"),
                ("with two CPUs", f"{own(vm)[vcpu]},{own(vm)[(vcpu + 1) % 20]}"),
                ("anywhere", "0-41"),
            )
            for words, cpus in wrong:
                yield Fault(
                    f"{at} {words}",
                    "hypervisor.vcpu_pins",
                    xml(vm, (pin, f"vcpupin vcpu='{vcpu}' cpuset='{cpus}'")),
                )
            yield Fault(
                f"{at} without a pin",
                "hypervisor.vcpu_pins",
                xml(vm, (f"<{pin}/>", "")),
            )
            yield Fault(
                f"{at}: its thread runs on the other node",
                "hypervisor.threads_allowed",
                status(vm, 10 + vcpu, alien[vcpu]),
            )
            yield Fault(
                f"{at}: its thread runs anywhere on its node",
                "hypervisor.threads_allowed",
                status(vm, 10 + vcpu, f"{own(vm)[0]}-{own(vm)[-1]}"),
            )
            yield Fault(
                f"{at}: its thread was not read",
                "hypervisor.threads_allowed",
                host(files={f"{task(vm, 10 + vcpu)}/status": None}),
            )
            yield Fault(
                f"{at}: its cgroup lacks its CPU",
                "hypervisor.cpuset_cgroup",
                cpuset(vm, vcpu, alien[0]),
            )
        mine = f"{own(vm)[0]}-{own(vm)[-1]}"
        yield Fault(
            f"vm{vm}: QEMU's threads on a CPU of the other VM",
            "hypervisor.emulator_pin",
            xml(
                vm, (f"emulatorpin cpuset='{mine}'", f"emulatorpin cpuset='{alien[3]}'")
            ),
        )
        yield Fault(
            f"vm{vm}: QEMU's threads without a pin",
            "hypervisor.emulator_pin",
            xml(vm, (f"<emulatorpin cpuset='{mine}'/>", "")),
        )
        yield Fault(
            f"vm{vm}: the I/O thread on CPUs of the other VM",
            "hypervisor.iothread_pin",
            xml(
                vm,
                (
                    f"iothreadpin iothread='1' cpuset='{mine}'",
                    f"iothreadpin iothread='1' cpuset='{alien[0]}-{alien[-1]}'",
                ),
            ),
        )
        for number, name in ((0, "QEMU"), (1, "IO iothread1"), (2, "vhost")):
            yield Fault(
                f"vm{vm}: thread {name} runs on a CPU of the other VM",
                "hypervisor.threads_allowed",
                status(vm, number, alien[5]),
            )
        yield Fault(
            f"vm{vm}: its process was not collected",
            "hypervisor.threads_allowed",
            host(
                files={
                    path: None
                    for path in sound.host().files
                    if path.startswith(f"/proc/{hosts.FIRST_PID + 100 * vm}/")
                }
            ),
        )
        yield Fault(
            f"vm{vm}: its cgroup takes memory of the other node",
            "hypervisor.cpuset_cgroup",
            host(files={f"{group(vm, 'vcpu3')}/cpuset.mems.effective": f"{2 - vm}\n"}),
        )
        yield Fault(
            f"vm{vm}: its cgroups were not read",
            "hypervisor.cpuset_cgroup",
            host(
                files={
                    path: None
                    for path in sound.host().files
                    if path.startswith(f"{group(vm, '')}")
                }
            ),
        )


def _memory():
    """Where the memory of a VM is."""
    for vm in VMS:
        node, far = vm - 1, 2 - vm
        path = f"/proc/{hosts.FIRST_PID + 100 * vm}/numa_maps"
        for percent in (2, 10, 50, 100):
            kb = {
                node: 128 * GB * (100 - percent) // 100,
                far: 128 * GB * percent // 100,
            }
            yield Fault(
                f"vm{vm}: {percent} % of its pages on the other node",
                "hypervisor.memory_local",
                host(files={path: hosts.numa_maps(kb)}),
            )
        yield Fault(
            f"vm{vm}: its pages were not read",
            "hypervisor.memory_local",
            host(files={path: None}),
        )
        yield Fault(
            f"vm{vm}: numa_maps is cut off at the beginning",
            "hypervisor.memory_local",
            host(files={path: ""}),
        )
        bound = f"<memory mode='strict' nodeset='{node}'/>"
        for words, wrong in (
            ("bound to the other node", f"<memory mode='strict' nodeset='{far}'/>"),
            ("only preferred", f"<memory mode='preferred' nodeset='{node}'/>"),
            ("interleaved", "<memory mode='interleave' nodeset='0-1'/>"),
            ("bound to both nodes", "<memory mode='strict' nodeset='0-1'/>"),
            ("bound nowhere", ""),
        ):
            yield Fault(
                f"vm{vm}: memory {words}",
                "hypervisor.numatune",
                xml(vm, (bound, wrong)),
            )
        cell = f"<memnode cellid='0' mode='strict' nodeset='{node}'/>"
        yield Fault(
            f"vm{vm}: its node bound to the other",
            "hypervisor.numatune",
            xml(vm, (cell, cell.replace(f"'{node}'/", f"'{far}'/"))),
        )


def _vms():
    """What libvirt says of VMs, and who is there."""
    for vm in VMS:
        for queues in (1, 4, 19):
            yield Fault(
                f"vm{vm}: {number_of(queues, 'queue')} on the host",
                "hypervisor.interface_queues",
                xml(vm, ("queues='20'", f"queues='{queues}'")),
            )
        yield Fault(
            f"vm{vm}: an emulated network card",
            "hypervisor.interface_queues",
            xml(vm, ("<model type='virtio'/>", "")),
        )
        command = f"virsh -r dumpxml {hosts.UUIDS[vm - 1]}"
        failed = CommandOutput(1, "", "error: failed to get domain")
        half = sound.host().commands[command].stdout[:900]
        for words, output in (
            ("was not asked", None),
            ("failed", failed),
            ("was cut off", CommandOutput(0, half)),
        ):
            yield Fault(
                f"vm{vm}: virsh dumpxml {words}",
                "hypervisor.vcpu_pins",
                host(commands={command: output}),
            )
        yield Fault(
            f"vm{vm} does not run",
            "certify.guest_on_host",
            xml(vm, (f" id='{vm}'", "")),
        )
        yield Fault(
            f"vm{vm} is of another flavor",
            "certify.flavor",
            xml(vm, ('name="hp.20c.128g"', 'name="hp.20c.64g"')),
        )
        yield Fault(
            f"vm{vm}: Nova has noted no flavor",
            "certify.flavor",
            xml(
                vm,
                ("<nova:instance", "<nova:thing"),
                ("</nova:instance", "</nova:thing"),
            ),
        )
        yield Fault(
            f"vm{vm} is of another class",
            "certify.flavor",
            xml(vm, (">high-performance<", ">general<")),
        )
        yield Fault(
            f"vm{vm} has less memory than its flavor",
            "certify.memory",
            xml(
                vm, (f"<memory unit='KiB'>{128 * GB}", f"<memory unit='KiB'>{64 * GB}")
            ),
        )
        yield Fault(
            f"vm{vm} has fewer vCPUs than its flavor",
            "certify.vcpus",
            xml(vm, ("'static'>20<", "'static'>18<")),
        )

    def third(case, **changes):
        case.host = hosts.with_domains(case.host, vm3=changes["xml"])

    yield Fault(
        "a third VM of the class on CPUs of the first",
        "hypervisor.class_rules",
        lambda case: third(
            case, xml=hosts.domain_xml(3, pins=[str(cpu) for cpu in own(1)])
        ),
    )
    yield Fault(
        "a third VM of the flavor that nobody looked into",
        "certify.every_vm",
        lambda case: third(
            case, xml=hosts.domain_xml(3, pins=[str(cpu) for cpu in own(2)])
        ),
    )
    for cpus in ("0-3", "20-39", "40-41"):
        yield Fault(
            f"a VM that shares CPUs {cpus}",
            "hypervisor.class_rules",
            lambda case, cpus=cpus: third(case, xml=hosts.general_xml(3, cpus)),
        )
    yield Fault(
        "no VM is listed",
        "certify.guest_on_host",
        host(commands={LIST: CommandOutput(0, "\n")}),
    )
    yield Fault(
        "libvirt was not asked", "hypervisor.vcpu_pins", host(commands={LIST: None})
    )
    yield Fault(
        "libvirt did not answer",
        "hypervisor.class_rules",
        host(commands={LIST: CommandOutput(1, "", "error: failed to connect")}),
    )


def _hosts():
    """What the host is."""
    yield Fault(
        "a node without memory",
        "hypervisor.memoryless_nodes",
        host(files={f"{NODE}/node1/meminfo": "Node 1 MemTotal:       0 kB\n"}),
    )
    yield Fault(
        "the memory of a node was not read",
        "hypervisor.memoryless_nodes",
        host(files={f"{NODE}/node1/meminfo": None}),
    )
    for cpu in (5, 41):
        rest = f"0-{cpu - 1}" + ("" if cpu == 41 else f",{cpu + 1}-41")
        yield Fault(
            f"CPU {cpu} is offline",
            "hypervisor.node_shape",
            host(files={f"{CPU}/online": f"{rest}\n"}),
        )
    for one, two in ((0, 1), (18, 19), (20, 21)):
        siblings = {
            f"{CPU}/cpu{cpu}/topology/thread_siblings_list": f"{one},{two}\n"
            for cpu in (one, two)
        }
        yield Fault(
            f"CPUs {one} and {two} are threads of a core",
            "hypervisor.smt",
            host(files=siblings),
        )
    yield Fault(
        "which CPUs are threads of a core was not read",
        "hypervisor.smt",
        host(files={f"{CPU}/cpu3/topology/thread_siblings_list": None}),
    )
    yield Fault(
        "the kernel merges pages over nodes",
        "hypervisor.ksm",
        host(files={"/sys/kernel/mm/ksm/run": "1\n"}),
    )
    yield Fault(
        "whether it merges pages was not read",
        "hypervisor.ksm",
        host(files={"/sys/kernel/mm/ksm/run": None}),
    )
    yield Fault(
        "dedicated CPUs are shared, too",
        "hypervisor.cpu_sets",
        host(
            files={
                "/etc/nova/nova.conf": "[compute]\ncpu_dedicated_set = 0-39\n"
                "cpu_shared_set = 38-41\n"
            }
        ),
    )
    yield Fault(
        "too few dedicated CPUs on a node",
        "hypervisor.cpu_sets",
        host(files={"/etc/nova/nova.conf": "[compute]\ncpu_dedicated_set = 0-29\n"}),
    )
    for cpu in (0, 25):
        rows = [("mlx5_comp0@pci:0000:00:03.0", cpu)]
        looks = [
            guests.interrupts([(name, {at: count}) for name, at in rows], 42)
            for count in (5000, 900000)
        ]
        yield Fault(
            f"a device interrupts CPU {cpu} of a VM",
            "hypervisor.irq_affinity",
            host(
                files={"/proc/interrupts": looks[0]},
                later={"/proc/interrupts": looks[1]},
            ),
        )
    yield Fault(
        "interrupts were looked at once",
        "hypervisor.irq_affinity",
        _looked_once,
    )


def _guests():
    """What the VMs are, seen from inside."""
    for vm in VMS:
        for present in (1, 4, 19):
            yield Fault(
                f"vm{vm}: {number_of(present, 'queue')} in the guest",
                "guest.nic_queues",
                other_guest(vm, present=present),
            )
        for enabled in (1, 4, 19):
            yield Fault(
                f"vm{vm}: {enabled} of 20 queues enabled",
                "guest.nic_queues",
                other_guest(vm, enabled=enabled),
            )
        for cpus in (1, 4):
            yield Fault(
                f"vm{vm}: all vectors on {number_of(cpus, 'CPU')}",
                "guest.nic_vectors",
                other_guest(vm, place=lambda queue, cpus=cpus: queue % cpus),
            )
        yield Fault(
            f"vm{vm}: counters of interrupts stand still",
            "guest.nic_spread",
            other_guest(vm, fired=[0] * 20),
        )
        for words, looks in (
            ("were not read", (None, None)),
            ("are empty", ("", "")),
        ):
            yield Fault(
                f"vm{vm}: interrupts {words}",
                "guest.nic_vectors",
                guest(
                    vm,
                    files={"/proc/interrupts": looks[0]},
                    later={"/proc/interrupts": looks[1]},
                ),
            )
        for ticks in (100, 400):
            lost = guests.stat(20, 1, more=ticks, idle=2000)
            yield Fault(
                f"vm{vm}: CPU 3 loses {ticks} ticks to others",
                "guest.steal",
                guest(vm, later={"/proc/stat": lost}),
            )
        yield from _never_stolen(vm)
        yield Fault(
            f"vm{vm}: steal was not read",
            "guest.steal",
            guest(vm, files={"/proc/stat": None}, later={"/proc/stat": None}),
        )
        rest = "00000000 " * 9
        dropping = "".join(
            f"{90000:08x} {900:08x} 0 {rest}{cpu:08x} 0 0\n" for cpu in range(20)
        )
        path = "/proc/net/softnet_stat"
        yield Fault(
            f"vm{vm}: packets are dropped",
            "guest.softnet_drops",
            guest(vm, later={path: dropping}),
        )
        yield Fault(
            f"vm{vm}: no packet came",
            "guest.softnet_drops",
            guest(vm, later={path: sound.guest(vm).files[path]}),
        )
        yield Fault(
            f"vm{vm}: dropped packets were not read",
            "guest.softnet_drops",
            guest(vm, files={path: None}, later={path: None}),
        )
        for number in (18, 10):
            yield Fault(
                f"vm{vm}: {number} of 20 vCPUs are online",
                "certify.vcpus",
                guest(vm, files={f"{CPU}/online": f"0-{number - 1}\n"}),
            )
        yield Fault(
            f"vm{vm}: two NUMA nodes",
            "guest.shape",
            guest(vm, files={f"{NODE}/online": "0-1\n", f"{NODE}/has_memory": "0-1\n"}),
        )
        yield Fault(
            f"vm{vm}: queues were not read",
            "guest.nic_queues",
            guest(
                vm,
                commands={"ethtool -l eth0": None},
                files={
                    path: None
                    for path in sound.guest(vm).files
                    if path.startswith(f"{NET}/queues/")
                },
            ),
        )
        yield Fault(
            f"vm{vm}: an emulated network card in the guest",
            "guest.nic_queues",
            guest(
                vm,
                links={f"{NET}/device/driver": "../../../bus/pci/drivers/e1000"},
            ),
        )


def unstolen(vm, idle=2000):
    """Return a fault: its steal time stands at 0 since boot."""
    return guest(
        vm,
        files={"/proc/stat": guests.stat(20)},
        later={"/proc/stat": guests.stat(20, idle=idle)},
    )


def schedstats(vm, vcpu, text):
    """Return a fault of what a vCPU's thread counts; None takes it away."""
    return host(files={f"{task(vm, 10 + vcpu)}/schedstat": text})


def counted(vm, vcpu, ran_s, waited_s):
    """Return a fault of how long it ran and waited between the looks."""
    text = hosts.schedstat(100 + ran_s, 0.5 + waited_s)
    return host(later={f"{task(vm, 10 + vcpu)}/schedstat": text})


def _never_stolen(vm):
    """Steal time at 0 since boot, which only the host's PASS for this VM settles."""
    other_vm = 3 - vm
    every = [f"{task(vm, 10 + vcpu)}/schedstat" for vcpu in range(20)]
    for words, plant in (
        ("the host did not count waiting", host(files=dict.fromkeys(every))),
        ("one vCPU was not counted", schedstats(vm, 7, None)),
        ("one vCPU was counted once", host(later={every[7]: None})),
        ("the kernel counts nothing", schedstats(vm, 7, "0 0 0\n")),
        ("one vCPU did not run", counted(vm, 19, 0, 0)),
        (
            "one vCPU waited for most of the little it ran",
            counted(vm, 19, 0.002, 0.008),
        ),
        ("a vCPU waited 2 %", counted(vm, 0, 1, 0.2)),
        ("the host was looked at once", _looked_once),
        ("its threads have no names", host(files={f"{task(vm, 17)}/comm": "x\n"})),
        (
            "only its neighbour's threads were counted",
            host(files={p.replace("/schedstat", "/comm"): None for p in every}),
        ),
    ):
        yield Fault(
            f"vm{vm}: steal stands at 0 since boot, {words}",
            "guest.steal",
            both(unstolen(vm), plant),
        )
    yield Fault(
        f"vm{vm}: steal at 0, and it is no VM of the host",
        "guest.steal",
        both(unstolen(vm), guest(vm, files={UUID: f"{hosts.UUIDS[6]}\n"})),
    )
    yield Fault(
        f"vm{vm}: steal was looked at too soon, and no vCPU waited",
        "guest.steal",
        guest(vm, later={"/proc/stat": guests.stat(20, 1, idle=600)}),
    )
    for waited_s in (0.6, 5):
        for words, steal in (
            ("steal stands at 0 since boot", unstolen(vm)),
            ("the guest sees no steal", lambda _case: None),
        ):
            yield Fault(
                f"vm{vm}: a vCPU waited {waited_s} of 10 s, {words}",
                "hypervisor.vcpu_wait",
                both(counted(vm, 7, 1, waited_s), steal),
            )
    yield Fault(
        f"vm{vm}: steal at 0, and only vm{other_vm} has both sides",
        "guest.steal",
        both(unstolen(vm), unstolen(other_vm), counted(vm, 3, 1, 0.3)),
    )


def both(*plants):
    def plant(case):
        for one in plants:
            one(case)

    return plant


def _looked_once(case):
    case.host = replace(case.host, later={}, interval_s=0)


def _together():
    """Files that do not belong together."""
    for vm in VMS:
        yield Fault(
            f"vm{vm}: a guest of another host",
            "certify.guest_on_host",
            guest(vm, files={UUID: f"{hosts.UUIDS[6]}\n"}),
        )
        yield Fault(
            f"vm{vm}: which VM it is was not read",
            "certify.guest_on_host",
            guest(vm, files={UUID: None, f"{NET}/address": None}),
        )
        yield Fault(
            f"vm{vm}: the file of the other VM in its place",
            "certify.every_vm",
            lambda case, vm=vm: case.guests.__setitem__(vm - 1, case.guests[2 - vm]),
        )
        yield Fault(
            f"vm{vm}: its file is missing",
            "certify.every_vm",
            lambda case, vm=vm: case.guests.pop(vm - 1),
        )
        for time in ("2026-11-22T12:00:00+00:00", "2026-11-21T10:00:00+00:00"):
            yield Fault(
                f"vm{vm}: collected at {time}",
                "certify.same_time",
                field_of(vm, taken_at=time),
            )
        yield Fault(
            f"vm{vm}: another name than the one that was measured",
            "certify.measured_here",
            field_of(vm, hostname="rgw7"),
        )
        yield Fault(
            f"vm{vm}: another kernel than the one that was measured",
            "certify.measured_here",
            guest(vm, files={"/proc/sys/kernel/osrelease": "6.5.0\n"}),
        )
        yield Fault(
            f"vm{vm}: its kernel was not read",
            "certify.measured_here",
            guest(vm, files={"/proc/sys/kernel/osrelease": None}),
        )
    yield Fault(
        "the host was looked at a day before",
        "certify.same_time",
        lambda case: setattr(
            case, "host", replace(case.host, taken_at="2026-11-21T10:00:00+00:00")
        ),
    )
    yield Fault(
        "another host than the one that was measured",
        "certify.measured_here",
        lambda case: setattr(case, "host", replace(case.host, hostname="compute2")),
    )
    yield Fault(
        "another CPU than the one that was measured",
        "certify.measured_here",
        host(files={"/proc/cpuinfo": "model name\t: EPYC 7742\n"}),
    )
    for who in ("node0", "node1"):
        yield Fault(
            f"{who} was measured on another machine",
            "certify.measured_here",
            noted(
                lambda run, who=who: run["sessions"][0]["targets"][who].update(
                    hostname="compute9"
                )
            ),
        )
    for words, cpu_s, more in (
        ("all VMs", 400.0, {"most_s": 200.0}),
        ("one vCPU", 10.0, {"most_s": 10.0}),
        ("a few", 1.2, {"most_s": 0.8}),
        ("one of many", 11.0, {"most_s": 10.2, "vms": 40}),
    ):
        for who in ("node0", "node1"):
            yield Fault(
                f"{words} busy while {who} was measured",
                "certify.baseline_alone",
                noted(
                    lambda run, who=who, cpu_s=cpu_s, more=more: run["steps"][1][
                        "beside"
                    ][who].update(cpu_s=cpu_s, **more)
                ),
            )
    for who in ("node0", "node1"):
        for words, steps in (("no step", (0, 1)), ("one step only", (1,))):
            yield Fault(
                f"what VMs did beside {who} is noted of {words}",
                "certify.baseline_alone",
                noted(
                    lambda run, who=who, steps=steps: [
                        run["steps"][n]["beside"].pop(who) for n in steps
                    ]
                ),
            )
        yield Fault(
            f"what VMs did beside {who} was not to be seen in a step",
            "certify.baseline_alone",
            noted(lambda run, who=who: run["steps"][0]["beside"].update({who: None})),
        )
        yield Fault(
            f"no step has measured {who}",
            "certify.baseline_alone",
            noted(
                lambda run, who=who: [
                    step["targets"].remove(who) for step in run["steps"]
                ]
            ),
        )
    yield Fault(
        "nothing is noted beside the baseline at all",
        "certify.baseline_alone",
        noted(lambda run: [step.pop("beside") for step in run["steps"]]),
    )
    yield Fault(
        "what VMs did beside the baseline means nothing",
        "samples.json",
        noted(lambda run: run["steps"][0]["beside"]["node0"].update(seconds=0)),
    )
    yield Fault(
        "measured a day before",
        "certify.same_time",
        noted(
            lambda run: [
                one.update(started_at="2026-11-21T09:20:00+00:00")
                for one in (*run["sessions"], *run["steps"])
            ]
        ),
    )
    yield Fault(
        "nothing is noted of the run",
        "certify.measured_here",
        lambda case: setattr(case, "run", None),
    )
    yield Fault(
        "a step of the run has failed",
        "certify.measured",
        noted(
            lambda run: run["failures"].append(
                {"where": "fio", "who": "vm1", "reason": "it timed out", "stderr": ""}
            )
        ),
    )


def _measured():
    """What was measured."""
    for who in ("vm1", "vm2"):
        for metric, (_, _, better, threads, _, ratio) in sound.METRICS.items():
            for count in threads:
                for factor in (2, 20):
                    yield Fault(
                        f"{who}: {metric} with {count} threads {factor} times worse",
                        "certify.compared",
                        scaled(
                            who,
                            metric,
                            factor if better == "lower" else 1 / factor,
                            count,
                        ),
                    )
            yield Fault(
                f"{who}: {metric} misses the target by 2 %",
                "certify.compared",
                scaled(who, metric, (2.04 if better == "lower" else 0.686) / ratio),
            )
        for metric in (
            "cpu.events_per_second",
            "memory.read_mib_per_second",
            "network.bits_per_second",
        ):
            yield Fault(
                f"{who}: {metric} was not measured",
                "certify.measured",
                samples(
                    lambda m, who=who, metric=metric: (
                        None if (m.who, m.metric) == (who, metric) else m
                    )
                ),
            )
        yield Fault(
            f"{who}: no latency was measured",
            "certify.measured",
            samples(
                lambda m, who=who: None if m.who == who and "latency" in m.metric else m
            ),
        )
        yield Fault(
            f"{who} was not measured",
            "certify.measured",
            samples(lambda m, who=who: None if m.who == who else m),
        )
        yield Fault(
            f"{who}: another sysbench",
            "certify.compared",
            samples(
                lambda m, who=who: (
                    replace(m, tool_version="1.1.0")
                    if (m.who, m.tool) == (who, "sysbench")
                    else m
                )
            ),
        )
        yield Fault(
            f"{who}: one round was left out",
            "certify.compared",
            samples(lambda m, who=who: None if (m.who, m.round) == (who, 2) else m),
        )
        yield Fault(
            f"{who}: values were copied from the host",
            "certify.compared",
            lambda case, who=who: _copied(case, who),
        )
    for rounds in (1, 3, 4):
        yield Fault(
            f"{number_of(rounds, 'round')} only",
            "certify.compared",
            samples(lambda m, rounds=rounds: m if m.round <= rounds else None),
        )
    for metric in sound.METRICS:
        yield Fault(
            f"{metric} has no baseline",
            "certify.compared",
            samples(
                lambda m, metric=metric: (
                    None if m.metric == metric and m.machine.kind == "host" else m
                )
            ),
        )
    yield Fault(
        "no host was measured",
        "certify.compared",
        samples(lambda m: None if m.machine.kind == "host" else m),
    )
    yield Fault(
        "one VM at a time",
        "certify.measured",
        samples(lambda m: replace(m, at_once=1) if m.machine.kind == "guest" else m),
    )
    yield Fault(
        "one thread only",
        "certify.measured",
        samples(
            lambda m: m if m.threads == 1 or not m.metric.startswith("cpu.") else None
        ),
    )
    for who in ("node0", "node1"):
        yield Fault(
            f"{who} saved power when it was measured",
            "certify.compared",
            machine(who, governor="powersave"),
        )
    yield Fault(
        "a VM faster than its host, which was not bound",
        "certify.compared",
        samples(
            lambda m: (
                replace(m, machine=replace(m.machine, node=None), value=m.value / 2)
                if m.machine.kind == "host" and m.better == "higher"
                else m
            )
        ),
    )


def _copied(case, who):
    values = {
        (m.metric, m.threads, m.round): m.value
        for m in case.measured
        if m.who == "node0"
    }
    case.measured = [
        replace(m, value=values[m.metric, m.threads, m.round])
        if m.who in {who, "node1"}
        else m
        for m in case.measured
    ]


def _policies():
    """Another promise than the one that is kept."""
    for shape in ("2x20", "2x32", "4x21"):
        yield Fault(
            f"policy for hosts of {shape}",
            "hypervisor.node_shape",
            policy(f"host_shape={shape}"),
        )
    high = "classes.high-performance"
    yield Fault(
        "policy that allows one VM on a host",
        "hypervisor.class_rules",
        policy(f"{high}.max_per_host=1"),
    )
    yield Fault(
        "policy that promises huge pages",
        "hypervisor.huge_pages",
        policy(f"{high}.mem_page_size=1GB"),
    )
    yield Fault(
        "policy that keeps QEMU's threads off vCPUs",
        "hypervisor.emulator_pin",
        policy(f"{high}.emulator_threads=share"),
    )
    yield Fault(
        "policy that promises IOPS, which nobody measured",
        "certify.measured",
        policy(f"{high}.disk.read_iops=50000", f"{high}.disk.write_iops=20000"),
    )
    for flavor in ("hp.20c.64g", "hp.20c.200g", "g.4c.8g"):
        yield Fault(
            f"flavor {flavor} is asked for",
            "certify.flavor",
            lambda case, flavor=flavor: setattr(case, "flavor", flavor),
        )
    yield Fault(
        "flavor that the policy does not have",
        "--flavor",
        lambda case: setattr(case, "flavor", "hp.40c.128g"),
    )


def _files():
    """Files that cannot be used."""
    for name in ("host.json", "guest1.json", "guest2.json", "samples.json"):
        yield Fault(f"{name} is missing", name, text(name, lambda _: None))
        for share in (0, 50, 99):
            yield Fault(
                f"{name} ends after {share} %",
                name,
                text(name, lambda t, share=share: t[: len(t) * share // 100]),
            )
        yield Fault(
            f"{name} is of another version",
            name,
            text(name, lambda t: json.dumps(json.loads(t) | {"schema_version": "9"})),
        )
    yield Fault(
        "policy.yaml is missing", "policy.yaml", text("policy.yaml", lambda _: None)
    )
    yield Fault(
        "policy.yaml ends in the middle",
        "policy.yaml",
        text("policy.yaml", lambda t: t[: t.index("vcpus") + 5]),
    )
    yield Fault(
        "a guest in place of the host",
        "host.json",
        text("host.json", lambda _: sound.collected(sound.guest(1))),
    )
    yield Fault(
        "the host in place of a guest",
        "guest1.json",
        text("guest1.json", lambda _: sound.collected(sound.host())),
    )
    yield Fault(
        "a guest is named twice",
        "guest1.json",
        lambda case: case.guest_names.extend(["guest1.json", "guest1.json"]),
    )
    yield Fault(
        "samples without measurements",
        "samples.json",
        text(
            "samples.json",
            lambda _: json.dumps(
                {
                    "schema_version": "1.0",
                    "scale_out": [
                        {"name": "x", "loads": [{"servers": 1, "per_second": 1}]}
                    ],
                }
            ),
        ),
    )
    yield Fault(
        "a run that bench run has not written",
        "samples.json",
        noted(lambda run: run.pop("sessions")),
    )


GROUPS = {
    one.__name__.strip("_"): list(one())
    for one in (
        *(_pins, _memory, _vms, _hosts, _guests),
        *(_together, _measured, _policies, _files),
    )
}
