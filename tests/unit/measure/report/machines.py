# SPDX-License-Identifier: Apache-2.0
"""What was collected on machines, as it stands in files."""

from xml.sax.saxutils import escape

from tests.unit.measure import guests, reports

UUIDS = (
    "11111111-2222-3333-4444-555555555555",
    "66666666-7777-8888-9999-000000000000",
)
_NODE = "/sys/devices/system/node"


def domain(name, pins, emulator):
    """Return libvirt's XML of a VM.

    :param pins: {vCPU: CPUs}
    """
    lines = "".join(
        f"<vcpupin vcpu='{vcpu}' cpuset='{cpus}'/>" for vcpu, cpus in pins.items()
    )
    return (
        f"<domain type='kvm' id='1'><name>{escape(name)}</name><uuid>x</uuid>"
        f"<memory unit='KiB'>4194304</memory><vcpu>{len(pins)}</vcpu>"
        f"<cputune>{lines}<emulatorpin cpuset='{emulator}'/></cputune></domain>"
    )


def host(names=("vm1", "vm2")):
    """Return the document of a host of 2 nodes with 20 CPUs, two VMs pinned to it."""
    cells = (range(20), range(20, 40))
    files = {
        f"{_NODE}/online": "0-1\n",
        f"{_NODE}/has_cpu": "0-1\n",
        f"{_NODE}/node0/cpulist": "0-19\n",
        f"{_NODE}/node1/cpulist": "20-39\n",
        "/sys/devices/system/cpu/online": "0-39\n",
        "/proc/interrupts": guests.interrupts([], cpus=40),
    }
    commands = {"virsh -r list --all --uuid": _said("\n".join(UUIDS))}
    for uuid, name, cpus in zip(UUIDS, names, cells, strict=True):
        pins = dict(enumerate(cpus[2:]))
        text = domain(name, pins, f"{cpus[0]}-{cpus[1]}")
        commands[f"virsh -r dumpxml {uuid}"] = _said(text)
    return reports.document(
        kind="host",
        hostname="compute1",
        interval_s=0,
        files=files,
        later={},
        links={},
        commands=commands,
        unread={},
    )


def guest():
    """Return the document of a guest of 20 vCPUs whose 20 queues have work."""
    found = guests.guest()
    return reports.document(
        files=dict(found.files),
        later=dict(found.later),
        links=dict(found.links),
        commands={},
        unread={},
    )


def _said(text):
    return {"exit_code": 0, "stdout": text, "stderr": ""}
