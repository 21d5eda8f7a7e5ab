# SPDX-License-Identifier: Apache-2.0
"""Faults that are planted in what a proof rests on; none of them may be proven.

Each table has, by the code that has to name it, faults by their names: what each
changes.  Of those whose code is no check's nothing can be judged.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from nova_perfvm.measure.collect.collected import CommandOutput
from nova_perfvm.measure.prove.inputs import UUID
from tests.unit.measure import guests, hosts
from tests.unit.measure.prove import sound
from tests.unit.measure.prove.sound import Case
from tests.unit.rules.hosts import HP

VMS = (1, 2)
# The first, the last and one between.
VCPUS = (0, 7, 19)
CPU, NODE, NET = hosts.CPU, hosts.NODE, "/sys/class/net/eth0"
LIST = "virsh -r list --all --uuid"
GB = 2**20
STAT, INTERRUPTS, SOFTNET = "/proc/stat", "/proc/interrupts", "/proc/net/softnet_stat"
RELEASE, CONF = "/proc/sys/kernel/osrelease", "/etc/nova/nova.conf"
DAY_BEFORE = "2026-11-21T09:20:00+00:00"


class Fault(NamedTuple):
    name: str
    code: str
    plant: Callable[[Case], None]


def own(vm):
    return hosts.own_cpus(vm)


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


def host(files=None, **changes):
    """Return a fault of the host's files; None takes one away."""

    def plant(case):
        case.host = guests.having(case.host, files=files or {}, **changes)

    return plant


def guest(vm, files=None, **changes):
    """Return a fault of what was collected in a VM."""

    def plant(case):
        found = case.guests[vm - 1]
        case.guests[vm - 1] = guests.having(found, files=files or {}, **changes)

    return plant


def always(vm, files):
    """Return a fault of a VM's files, before it was measured and after."""

    def before(run):
        known = run["sessions"][0]["targets"][f"vm{vm}"]["collected"]["files"]
        for path, text in files.items():
            known.pop(path, None)
            known |= {} if text is None else {path: text}

    return both(guest(vm, files), noted(before))


def other_guest(vm, **changes):
    """Return a guest of another build."""

    def plant(case):
        case.guests[vm - 1] = sound.guest(vm, **changes)

    return plant


def guest_of(vm, **changes):
    """Return a fault of what is known of a guest's file."""

    def plant(case):
        case.guests[vm - 1] = replace(case.guests[vm - 1], **changes)

    return plant


def host_of(**changes):
    """Return a fault of what is known of the host's file."""

    def plant(case):
        case.host = replace(case.host, **changes)

    return plant


def third(domain):
    """Return a fault: another VM runs on the host."""

    def plant(case):
        case.host = hosts.with_domains(case.host, vm3=domain)

    return plant


def samples(change):
    """Return a fault of measurements: each by what it becomes, None for nothing."""

    def plant(case):
        changed = [change(one) for one in case.measured]
        case.measured = [one for one in changed if one is not None]

    return plant


def without(unwanted):
    """Return a fault of measurements that are left out."""
    return samples(lambda m: None if unwanted(m) else m)


def altered(matches, change):
    """Return a fault of measurements that match: the fields that change gives."""
    return samples(lambda m: replace(m, **change(m)) if matches(m) else m)


def scaled(who, metric, factor, threads=None):
    """Return a fault of a VM's figures in one metric."""
    return altered(
        lambda m: (m.who, m.metric) == (who, metric) and threads in {None, m.threads},
        lambda m: {"value": m.value * factor},
    )


def noted(change):
    """Return a fault of what bench run noted."""
    return lambda case: change(case.run)


def policy(**changes):
    def plant(case):
        case.policy = sound.policy_document(**changes)

    return plant


def flavor(name):
    return lambda case: setattr(case, "flavor", name)


def both(*plants):
    def plant(case):
        for one in plants:
            one(case)

    return plant


def _pins(vm, vcpu):
    """Where libvirt's XML and the kernel put a vCPU."""
    cpu, mine, alien = own(vm)[vcpu], own(vm), own(3 - vm)
    pin = f"<vcpupin vcpu='{vcpu}' cpuset='{cpu}'/>"

    def pinned(cpus):
        return xml(vm, (pin, f"<vcpupin vcpu='{vcpu}' cpuset='{cpus}'/>"))

    def runs(cpus):
        status = hosts.status("x", cpus, vm - 1)
        return host({f"{task(vm, 10 + vcpu)}/status": status})

    return {
        "hypervisor.vcpu_pins": {
            "on the other node": pinned(alien[vcpu]),
            "on a CPU of its neighbour": pinned(mine[(vcpu + 1) % 20]),
            "with two CPUs": pinned(f"{cpu},{mine[(vcpu + 1) % 20]}"),
            "anywhere": pinned("0-39"),
            "without a pin": xml(vm, (pin, "")),
        },
        "hypervisor.threads_allowed": {
            "its thread runs on the other node": runs(alien[vcpu]),
            "its thread runs anywhere on its node": runs(f"{mine[0]}-{mine[-1]}"),
            "its thread was not read": host({f"{task(vm, 10 + vcpu)}/status": None}),
        },
        "hypervisor.cpuset_cgroup": {
            "its cgroup lacks its CPU": host(
                {f"{group(vm, f'vcpu{vcpu}')}/cpuset.cpus.effective": f"{alien[0]}\n"}
            ),
        },
    }


def _threads(vm):
    """Where a VM's other threads are, and its cgroups."""
    alien = own(3 - vm)
    mine = f"{own(vm)[0]}-{own(vm)[-1]}"
    emulator = f"<emulatorpin cpuset='{mine}'/>"
    iothread = f"iothreadpin iothread='1' cpuset='{mine}'"
    elsewhere = iothread.replace(mine, f"{alien[0]}-{alien[-1]}")
    process, groups = f"/proc/{hosts.FIRST_PID + 100 * vm}/", group(vm, "")

    def runs(number):
        status = hosts.status("x", alien[5], vm - 1)
        return host({f"{task(vm, number)}/status": status})

    def unread(below):
        paths = sound.host().files
        return host({path: None for path in paths if path.startswith(below)})

    return {
        "hypervisor.emulator_pin": {
            "QEMU's threads on a CPU of the other VM": xml(
                vm, (emulator, f"<emulatorpin cpuset='{alien[3]}'/>")
            ),
            "QEMU's threads without a pin": xml(vm, (emulator, "")),
        },
        "hypervisor.iothread_pin": {
            "the I/O thread on CPUs of the other VM": xml(vm, (iothread, elsewhere)),
        },
        "hypervisor.threads_allowed": {
            "QEMU runs on a CPU of the other VM": runs(0),
            "the I/O thread runs on a CPU of the other VM": runs(1),
            "vhost runs on a CPU of the other VM": runs(2),
            "its process was not collected": unread(process),
        },
        "hypervisor.cpuset_cgroup": {
            "its cgroup takes memory of the other node": host(
                {f"{group(vm, 'vcpu3')}/cpuset.mems.effective": f"{2 - vm}\n"}
            ),
            "its cgroups were not read": unread(groups),
        },
    }


def _memory(vm):
    """Where the memory of a VM is."""
    node, far = vm - 1, 2 - vm
    path = f"/proc/{hosts.FIRST_PID + 100 * vm}/numa_maps"
    bound = f"<memory mode='strict' nodeset='{node}'/>"
    cell = f"<memnode cellid='0' mode='strict' nodeset='{node}'/>"

    def split(percent):
        remote = 128 * GB * percent // 100
        return host({path: hosts.numa_maps({node: 128 * GB - remote, far: remote})})

    return {
        "hypervisor.memory_local": {
            **{
                f"{percent} % of its pages on the other node": split(percent)
                for percent in (2, 10, 50, 100)
            },
            "its pages were not read": host({path: None}),
            "numa_maps is cut off at the beginning": host({path: ""}),
        },
        "hypervisor.numatune": {
            **{
                f"memory {words}": xml(vm, (bound, wrong))
                for words, wrong in (
                    ("bound to the other node", bound.replace(str(node), str(far))),
                    ("only preferred", bound.replace("strict", "preferred")),
                    ("interleaved", "<memory mode='interleave' nodeset='0-1'/>"),
                    ("bound to both nodes", "<memory mode='strict' nodeset='0-1'/>"),
                    ("bound nowhere", ""),
                )
            },
            "its node bound to the other": xml(
                vm, (cell, cell.replace(f"'{node}'/", f"'{far}'/"))
            ),
        },
    }


def _domains(vm):
    """What libvirt says of a VM."""
    command = f"virsh -r dumpxml {hosts.UUIDS[vm - 1]}"
    half = sound.host().commands[command].stdout[:900]
    memory = f"<memory unit='KiB'>{128 * GB}"
    return {
        "hypervisor.interface_queues": {
            **{
                f"{n} queues on the host": xml(vm, ("queues='20'", f"queues='{n}'"))
                for n in (1, 4, 19)
            },
            "an emulated network card": xml(vm, ("<model type='virtio'/>", "")),
        },
        "hypervisor.vcpu_pins": {
            f"virsh dumpxml {words}": host(commands={command: output})
            for words, output in (
                ("was not asked", None),
                ("failed", CommandOutput(1, "", "error: failed to get domain")),
                ("was cut off", CommandOutput(0, half)),
            )
        },
        "proof.guest_on_host": {"it does not run": xml(vm, (f" id='{vm}'", ""))},
        "proof.flavor": {
            "it is of another flavor": xml(vm, ('"hp.20c.128g"', '"hp.20c.64g"')),
            "Nova has noted no flavor": xml(
                vm, ("<nova:instance", "<nova:thing"), ("/nova:instance", "/nova:thing")
            ),
            "it is of another class": xml(vm, (">high-performance<", ">general<")),
        },
        "proof.memory": {
            "it has less memory than its flavor": xml(
                vm, (memory, f"<memory unit='KiB'>{64 * GB}")
            ),
        },
        "proof.vcpus": {
            "it has fewer vCPUs than its flavor": xml(
                vm, ("'static'>20<", "'static'>18<")
            ),
        },
    }


def _strangers():
    """Other VMs, and a libvirt that does not answer."""

    def high(vm):
        return third(hosts.domain_xml(3, pins=[str(cpu) for cpu in own(vm)]))

    refused = CommandOutput(1, "", "error: failed to connect")
    return {
        "hypervisor.class_rules": {
            "a third VM of the class on CPUs of the first": high(1),
            **{
                f"a VM that shares CPUs {cpus}": third(hosts.general_xml(3, cpus))
                for cpus in ("0-3", "20-39", "19-20")
            },
            "libvirt did not answer": host(commands={LIST: refused}),
        },
        "proof.every_vm": {
            "a third VM of the flavor that nobody looked into": high(2),
        },
        "proof.guest_on_host": {
            "no VM is listed": host(commands={LIST: CommandOutput(0, "\n")}),
        },
        "hypervisor.vcpu_pins": {"libvirt was not asked": host(commands={LIST: None})},
    }


def _hosts():
    """What the host is."""
    meminfo, ksm = f"{NODE}/node1/meminfo", "/sys/kernel/mm/ksm/run"

    def siblings(one, two):
        topology = "topology/thread_siblings_list"
        pair = {f"{CPU}/cpu{cpu}/{topology}": f"{one},{two}\n" for cpu in (one, two)}
        return host(pair)

    def sets(lines):
        return host({CONF: f"[compute]\n{lines}\n"})

    return {
        "hypervisor.memoryless_nodes": {
            "a node without memory": host({meminfo: "Node 1 MemTotal:       0 kB\n"}),
            "the memory of a node was not read": host({meminfo: None}),
        },
        "hypervisor.node_shape": {
            f"CPU {cpu} is offline": host({f"{CPU}/online": f"{online}\n"})
            for cpu, online in ((5, "0-4,6-39"), (39, "0-38"))
        },
        "hypervisor.smt": {
            **{
                f"CPUs {one} and {two} are threads of a core": siblings(one, two)
                for one, two in ((0, 1), (18, 19), (20, 21))
            },
            "which CPUs are threads of a core was not read": host(
                {f"{CPU}/cpu3/topology/thread_siblings_list": None}
            ),
        },
        "hypervisor.ksm": {
            "the kernel merges pages over nodes": host({ksm: "1\n"}),
            "whether it merges pages was not read": host({ksm: None}),
        },
        "hypervisor.cpu_sets": {
            "dedicated CPUs are shared, too": sets(
                "cpu_dedicated_set = 0-39\ncpu_shared_set = 38-39"
            ),
            "too few dedicated CPUs on a node": sets("cpu_dedicated_set = 0-29"),
        },
    }


def _guests(vm):
    """What a VM is, seen from inside."""
    rest = "00000000 " * 9
    dropping = "".join(
        f"{90000:08x} {900:08x} 0 {rest}{cpu:08x} 0 0\n" for cpu in range(20)
    )
    queues = [path for path in sound.guest(vm).files if f"{NET}/queues/" in path]
    e1000 = "../../../bus/pci/drivers/e1000"

    def twice(path, value):
        return guest(vm, {path: value}, later={path: value})

    def stolen(ticks, idle=2000):
        return guest(vm, later={STAT: guests.stat(20, 1, more=ticks, idle=idle)})

    return {
        "guest.nic_queues": {
            **{
                f"{n} queues in the guest": other_guest(vm, present=n)
                for n in (1, 4, 19)
            },
            **{
                f"{n} of 20 queues enabled": other_guest(vm, enabled=n)
                for n in (1, 4, 19)
            },
            "queues were not read": guest(
                vm, dict.fromkeys(queues), commands={"ethtool -l eth0": None}
            ),
            "an emulated network card in the guest": guest(
                vm, links={f"{NET}/device/driver": e1000}
            ),
        },
        "guest.nic_vectors": {
            "all vectors on one CPU": other_guest(vm, place=lambda _queue: 0),
            "all vectors on 4 CPUs": other_guest(vm, place=lambda queue: queue % 4),
            "interrupts were not read": twice(INTERRUPTS, None),
            "interrupts are empty": twice(INTERRUPTS, ""),
        },
        "guest.nic_spread": {
            "counters of interrupts stand still": other_guest(vm, fired=[0] * 20),
        },
        "guest.steal": {
            "CPU 3 loses 100 ticks to others": stolen(100),
            "CPU 3 loses 400 ticks to others": stolen(400),
            "steal was not read": twice(STAT, None),
            "steal was looked at too soon": stolen(0, idle=600),
        },
        "guest.softnet_drops": {
            "packets are dropped": guest(vm, later={SOFTNET: dropping}),
            "no packet came": guest(
                vm, later={SOFTNET: sound.guest(vm).files[SOFTNET]}
            ),
            "dropped packets were not read": twice(SOFTNET, None),
        },
        "proof.vcpus": {
            f"{n} of 20 vCPUs are online": guest(vm, {f"{CPU}/online": f"0-{n - 1}\n"})
            for n in (18, 10)
        },
        "guest.shape": {
            "two NUMA nodes": guest(
                vm, {f"{NODE}/online": "0-1\n", f"{NODE}/has_memory": "0-1\n"}
            ),
        },
    }


def unstolen(vm, idle=2000):
    """Return a fault: its steal time stands at 0 since boot."""
    first, later = {STAT: guests.stat(20)}, {STAT: guests.stat(20, idle=idle)}

    def before(run):
        run["sessions"][0]["targets"][f"vm{vm}"]["collected"]["files"].update(first)

    return both(guest(vm, first, later=later), noted(before))


def counted(vm, vcpu, ran_s, waited_s):
    """Return a fault of how long a vCPU ran and waited between the looks."""
    later = hosts.schedstat(100 + ran_s, 0.5 + waited_s)
    return host(later={f"{task(vm, 10 + vcpu)}/schedstat": later})


def _waiting(vm):
    """Steal time at 0 since boot, which only the host's PASS for this VM settles."""
    every = [f"{task(vm, 10 + vcpu)}/schedstat" for vcpu in range(20)]
    names = {path.replace("/schedstat", "/comm"): None for path in every}
    waiting = {waited_s: counted(vm, 7, 1, waited_s) for waited_s in (0.6, 5)}
    return {
        "guest.steal": {
            f"steal stands at 0 since boot, {words}": both(unstolen(vm), plant)
            for words, plant in (
                ("the host did not count waiting", host(dict.fromkeys(every))),
                ("one vCPU was not counted", host({every[7]: None})),
                ("one vCPU did not run", counted(vm, 19, 0, 0)),
                ("a vCPU waited 2 %", counted(vm, 0, 1, 0.2)),
                ("the host was looked at once", host_of(later={}, interval_s=0)),
                ("only its neighbour's threads were counted", host(names)),
                (
                    "it is no VM of the host",
                    guest(vm, {UUID: f"{hosts.UUIDS[6]}\n"}),
                ),
                (
                    "only the other VM has both sides",
                    both(unstolen(3 - vm), counted(vm, 3, 1, 0.3)),
                ),
            )
        },
        "hypervisor.vcpu_wait": {
            **{f"a vCPU waited {s} of 10 s": plant for s, plant in waiting.items()},
            **{
                f"a vCPU waited {s} of 10 s, steal at 0": both(plant, unstolen(vm))
                for s, plant in waiting.items()
            },
        },
    }


def _together(vm):
    """A guest's file that does not belong to the others."""

    def copied(case):
        case.guests[vm - 1] = case.guests[2 - vm]

    return {
        "proof.guest_on_host": {
            "a guest of another host": guest(vm, {UUID: f"{hosts.UUIDS[6]}\n"}),
            "which VM it is was not read": guest(
                vm, {UUID: None, f"{NET}/address": None}
            ),
        },
        "proof.every_vm": {
            "the file of the other VM in its place": copied,
            "its file is missing": lambda case: case.guests.pop(vm - 1),
        },
        "proof.same_time": {
            f"collected at {time}": guest_of(vm, taken_at=time)
            for time in ("2026-11-22T12:00:00+00:00", DAY_BEFORE)
        },
        "proof.measured_here": {
            "another name than was measured": guest_of(vm, hostname="rgw7"),
            "another kernel than was measured": guest(vm, {RELEASE: "6.5.0\n"}),
            "its kernel was not read": guest(vm, {RELEASE: None}),
        },
    }


def _of_hosts(run):
    """Return the steps that measure the host, but for warm-up."""
    return [one for one in run["steps"] if one["beside"] and not one["warm_up"]]


def _baseline(node):
    """What was noted when a node of the host was measured."""
    who = f"node{node}"

    def beside(step, *, every=False, **changes):
        def change(run):
            of_hosts = _of_hosts(run)
            steps = of_hosts if every else [of_hosts[step]]
            for one in steps:
                if changes:
                    one["beside"][who].update(changes)
                else:
                    one["beside"].pop(who)

        return noted(change)

    return {
        "proof.measured_here": {
            "it was measured on another machine": noted(
                lambda run: run["sessions"][0]["targets"][who].update(hostname="other")
            ),
        },
        "proof.baseline_alone": {
            "all VMs busy": beside(1, cpu_s=400.0, most_s=200.0),
            "one vCPU busy": beside(1, cpu_s=10.0, most_s=10.0),
            "a few busy": beside(1, cpu_s=1.2, most_s=0.8),
            "one of many busy": beside(1, cpu_s=11.0, most_s=10.2, vms=40),
            "what VMs did is noted of no step": beside(0, every=True),
            "what VMs did is noted of one step only": beside(1),
            "what VMs did was not to be seen": noted(
                lambda run: _of_hosts(run)[0]["beside"].update({who: None})
            ),
            "no step has measured it": noted(
                lambda run: [
                    step["targets"].remove(who)
                    for step in run["steps"]
                    if who in step["targets"]
                ]
            ),
        },
        "proof.compared": {
            "it saved power": altered(
                lambda m: m.who == who,
                lambda m: {"machine": replace(m.machine, governor="powersave")},
            ),
        },
    }


def _run():
    """What was noted of all measurements, and of the host."""
    failure = {"where": "fio", "who": "vm1", "reason": "it timed out", "stderr": ""}
    return {
        "proof.same_time": {
            "the host was looked at a day before": host_of(taken_at=DAY_BEFORE),
            "measured a day before": noted(
                lambda run: [
                    one.update(started_at=DAY_BEFORE)
                    for one in (*run["sessions"], *run["steps"])
                ]
            ),
        },
        "proof.measured_here": {
            "another host than was measured": host_of(hostname="compute2"),
            "another CPU than was measured": host(
                {"/proc/cpuinfo": "model name\t: EPYC 7742\n"}
            ),
        },
        "proof.baseline_alone": {
            "nothing is noted beside the baseline at all": noted(
                lambda run: [step.pop("beside") for step in run["steps"]]
            ),
        },
        "proof.measured": {
            "a step of the run has failed": noted(
                lambda run: run["failures"].append(failure)
            ),
        },
        "the record": {
            "nothing is noted of the run": lambda case: case.run.clear(),
            "what VMs did beside the baseline means nothing": noted(
                lambda run: _of_hosts(run)[0]["beside"]["node0"].update(seconds=0)
            ),
            "a run that was not written by a proof": noted(
                lambda run: run.pop("sessions")
            ),
        },
    }


def _measured(vm):
    """What was measured of a VM."""
    who = f"vm{vm}"
    worse, near = {}, {}
    for metric in sound.ENDPOINTS:
        _, _, better, threads, _, ratio = sound.METRICS[metric]
        less, most = better == "lower", max(threads)
        worse |= {
            f"{metric} with {most} threads {factor} times worse": scaled(
                who, metric, factor if less else 1 / factor, most
            )
            for factor in (2, 20)
        }
        near[f"{metric} misses the target by 2 %"] = scaled(
            who, metric, (2.04 if less else 0.686) / ratio
        )

    def copied(case):
        def run_of(m):
            return m.metric, m.threads, m.round

        values = {run_of(m): m.value for m in case.measured if m.who == "node0"}
        altered(
            lambda m: m.who in {who, "node1"}, lambda m: {"value": values[run_of(m)]}
        )(case)

    def unmeasured(words):
        return without(lambda m: m.who == who and words in m.metric)

    return {
        "proof.compared": {
            **worse,
            **near,
            "another sysbench": altered(
                lambda m: (m.who, m.tool) == (who, "sysbench"),
                lambda _: {"tool_version": "1.1.0"},
            ),
            "one round was left out": without(lambda m: (m.who, m.round) == (who, 2)),
            "values were copied from the host": copied,
        },
        "proof.measured": {
            f"no {words or 'metric'} was measured": unmeasured(words)
            for words in (*sound.ENDPOINTS, "")
        },
    }


def _samples():
    """What was measured of all."""
    return {
        "proof.compared": {
            "1 round only": without(lambda m: m.round > 1),
            "3 rounds only": without(lambda m: m.round > 3),
            "4 rounds only": without(lambda m: m.round > 4),
            **{
                f"{metric} has no baseline": without(
                    lambda m, metric=metric: (
                        (m.metric, m.machine.kind) == (metric, "host")
                    )
                )
                for metric in sound.ENDPOINTS
            },
            "no host was measured": without(lambda m: m.machine.kind == "host"),
            "a VM faster than its host, which was not bound": altered(
                lambda m: (m.machine.kind, m.better) == ("host", "higher"),
                lambda m: {
                    "machine": replace(m.machine, node=None),
                    "value": m.value / 2,
                },
            ),
        },
        "proof.measured": {
            "one VM at a time": altered(
                lambda m: m.machine.kind == "guest", lambda _: {"at_once": 1}
            ),
            "one thread only": without(
                lambda m: m.threads > 1 and m.metric.startswith("cpu.")
            ),
        },
    }


def _policies():
    """Another promise than the one that is kept."""
    guaranteed = replace(HP.disk, read_iops=50000, write_iops=20000)
    return {
        "hypervisor.node_shape": {
            f"policy for hosts of {shape}": policy(shape=shape)
            for shape in ("2x21", "2x32", "4x20")
        },
        "hypervisor.class_rules": {
            "policy that allows one VM on a host": policy(max_per_host=1),
        },
        "hypervisor.huge_pages": {
            "policy that promises huge pages": policy(mem_page_size="1GB"),
        },
        "hypervisor.emulator_pin": {
            "policy that keeps QEMU's threads off vCPUs": policy(
                emulator_threads="share"
            ),
        },
        "proof.measured": {
            "policy that promises unmeasured IOPS": policy(disk=guaranteed),
        },
        "proof.flavor": {
            f"flavor {name} is asked for": flavor(name)
            for name in ("hp.20c.64g", "hp.20c.200g", "g.4c.8g")
        },
        "--flavor": {"flavor that the policy does not have": flavor("hp.40c.128g")},
    }


def faults_of(table, prefix=""):
    """Return the faults of a table."""
    return [
        Fault(f"{prefix}{name}", code, plant)
        for code, named in table.items()
        for name, plant in named.items()
    ]


FAULTS = [
    *(
        fault
        for vm in VMS
        for vcpu in VCPUS
        for fault in faults_of(_pins(vm, vcpu), f"vm{vm} vCPU {vcpu}: ")
    ),
    *(
        fault
        for vm in VMS
        for table in (
            *(_threads, _memory, _domains, _guests),
            *(_waiting, _together, _measured),
        )
        for fault in faults_of(table(vm), f"vm{vm}: ")
    ),
    *(
        fault
        for node in (0, 1)
        for fault in faults_of(_baseline(node), f"node{node}: ")
    ),
    *(
        fault
        for table in (_strangers, _hosts, _run, _samples, _policies)
        for fault in faults_of(table())
    ),
]
