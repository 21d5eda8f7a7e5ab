# SPDX-License-Identifier: Apache-2.0
"""Faults that counters show, of machines under load, and counters that show nothing."""

from dataclasses import replace

from tests.unit.measure import guests, hosts
from tests.unit.measure.prove import sound
from tests.unit.measure.prove.faults import (
    INTERRUPTS,
    SOFTNET,
    STAT,
    VMS,
    both,
    counted,
    faults_of,
    guest,
    host,
    host_of,
    noted,
    own,
    task,
    third,
)

STATISTICS = "/sys/class/net/{}/statistics/{}"
LOST = 900_000


def _scheduled(vm, first, later):
    """Return a fault: what the kernel counts of each vCPU at both looks."""
    paths = [f"{task(vm, 10 + vcpu)}/schedstat" for vcpu in range(20)]
    return host(dict.fromkeys(paths, first), later=dict.fromkeys(paths, later))


def _interrupted(ticks, cpus):
    """Return a fault: softirqs took so many of 1,000 ticks of CPUs."""
    return host(later={STAT: hosts.stat(40, 1000, at=dict.fromkeys(cpus, ticks))})


def _waiting(vm):
    """What the vCPUs of a VM lose, and load that is missing."""
    first = own(vm)[0]
    cut = "".join(
        line
        for line in hosts.stat(40, 1000).splitlines(keepends=True)
        if not line.startswith(f"cpu{first + 3} ")
    )
    return {
        "hypervisor.vcpu_wait": {
            "it was idle while the host was collected": _scheduled(
                vm, hosts.schedstat(100, 0.5), hosts.schedstat(100.02, 0.5)
            ),
            "one vCPU was idle while the host was collected": counted(vm, 7, 0.1, 0),
            "one vCPU waited 30 %, all 1.5 %": counted(vm, 0, 7, 3),
            "the kernel does not count waiting": _scheduled(
                vm, hosts.schedstat(100), hosts.schedstat(101)
            ),
            "the kernel counts nothing": _scheduled(vm, "0 0 0\n", "0 0 0\n"),
        },
        "hypervisor.host_time": {
            "softirqs take 9 % of one of its CPUs": _interrupted(90, [first + 5]),
            "softirqs take 6 % of all its CPUs": _interrupted(60, own(vm)),
            "softirqs and threads take 7 %, each less than 5": both(
                _interrupted(40, [first + 5]), counted(vm, 5, 1, 0.3)
            ),
            "what a CPU of it did is not told": host(later={STAT: cut}),
            "the kernel's time was read once": host(later={STAT: None}),
        },
        "guest.steal": {
            "it was idle while it was collected": guest(
                vm, later={STAT: guests.stat(20, 1, idle=2000, busy=0.01)}
            ),
            "a vCPU was idle while it was collected": guest(
                vm,
                later={
                    STAT: guests.stat(20, 1, idle=2000).replace(
                        "cpu7 1751 0 0 1248", "cpu7 1001 0 0 1998"
                    )
                },
            ),
        },
    }


def _guest_packets(vm):
    """Packets that a VM lost."""

    def at(counter, number):
        return {STATISTICS.format("eth0", counter): number and f"{number}\n"}

    found = sound.guest(vm).files
    unread = {path: None for path in found if "/statistics/" in path}
    return {
        "guest.nic_losses": {
            **{
                f"{LOST} {counter} while it was collected": guest(
                    vm, at(counter, 3), later=at(counter, LOST + 3)
                )
                for counter in ("rx_dropped", "tx_dropped", "rx_missed_errors")
            },
            "1 in 5,000 lost": guest(vm, later=at("rx_dropped", 212)),
            "what its NIC lost was not read": guest(vm, unread),
            "what its NIC lost was read once": guest(vm, later=dict.fromkeys(unread)),
        },
        "proof.counters": {
            "900,000 rx_dropped since it was measured": guest(
                vm, at("rx_dropped", LOST), later=at("rx_dropped", LOST)
            ),
            "what its NIC had lost before is not noted": noted(
                lambda run: [
                    run["sessions"][0]["targets"][f"vm{vm}"]["collected"]["files"].pop(
                        path
                    )
                    for path in unread
                ]
            ),
        },
    }


def _host_packets():
    """Packets that the host lost."""

    def at(nic, counter, number):
        return {STATISTICS.format(nic, counter): number and f"{number}\n"}

    return {
        "hypervisor.nic_losses": {
            **{
                f"{nic}: {LOST} {counter} on the host": host(
                    at(nic, counter, 0) | at(nic, counter, "0"),
                    later=at(nic, counter, LOST),
                )
                for nic, counter in (
                    *(("eth0", "rx_missed_errors"), ("eth1", "rx_dropped")),
                    *(("eth1", "rx_fifo_errors"), ("tap1", "tx_dropped")),
                    ("tap2", "tx_dropped"),
                )
            },
            "what tap2 lost was not read": host(
                dict.fromkeys(hosts.nic_statistics(["tap2"], 0))
            ),
        },
        "hypervisor.softnet_drops": {
            "the host's kernel drops packets": host(
                later={SOFTNET: hosts.softnet(40, 91000, 900)}
            ),
            "what the host's kernel drops was not read": host({SOFTNET: None}),
        },
        "proof.counters": {
            "the host has lost 900,000 packets since it was measured": host(
                at("eth1", "rx_dropped", LOST), later=at("eth1", "rx_dropped", LOST)
            ),
        },
    }


def _roomy(*changes):
    """Return a fault of a host that has a core of each node for itself."""

    def plant(case):
        files = sound.identity("compute1")
        case.host = guests.having(hosts.roomy(), files=files)
        case.policy = sound.policy_document(shape="2x21")
        both(*changes)(case)

    return plant


def _kept_away():
    """Interrupts and VMs on CPUs that they could be kept away from."""

    def interrupted(cpu):
        first, later = (
            guests.interrupts([("mlx5_comp0@pci:0000:00:03.0", {cpu: count})], 42)
            for count in (5000, 900000)
        )
        return host({INTERRUPTS: first}, later={INTERRUPTS: later})

    isolated = {"/proc/cmdline": "quiet isolcpus=20-39\n"}
    return {
        "hypervisor.irq_affinity": {
            "a device interrupts CPU 0 of a VM": _roomy(interrupted(0)),
            "a device interrupts CPU 25 of a VM": _roomy(interrupted(25)),
            "interrupts were looked at once": _roomy(host_of(later={}, interval_s=0)),
        },
        "hypervisor.isolation": {
            "a VM floats over isolated CPUs": both(
                host(isolated), third(hosts.general_xml(3, "20-39"))
            ),
        },
    }


def _alone():
    """The neighbour that a VM may have was not there."""

    def plant(case):
        case.host = guests.having(hosts.host(vms=1), files=sound.identity("compute1"))
        case.guests.pop()
        case.measured = [
            replace(m, at_once=1) for m in case.measured if m.who in {"node0", "vm1"}
        ]

    return {"proof.every_vm": {"one VM where the class allows two": plant}}


FAULTS = [
    *(
        fault
        for vm in VMS
        for table in (_waiting, _guest_packets)
        for fault in faults_of(table(vm), f"vm{vm}: ")
    ),
    *(
        fault
        for table in (_host_packets, _kept_away, _alone)
        for fault in faults_of(table())
    ),
]
