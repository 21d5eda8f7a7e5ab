# SPDX-License-Identifier: Apache-2.0
"""A guest of two NUMA nodes that plays the hypervisor of two VMs.

Its kernel is real: nodes, cgroups, affinities, pages and vhost's threads are its own.
``virsh`` is a stand-in that prints files, and libvirt's part, making cgroups and
putting threads into them, is done here.
"""

import json
import pathlib
import time

from nova_perfvm.measure.collect import collector, reading
from tests.guest import machine, pretended_vm
from tests.unit.measure import hosts

PACKAGES = ("libffi8", "libnuma1", "numactl")
MODULES = (
    "drivers/net/tun",
    "drivers/net/tap",
    "drivers/vhost/vhost_iotlb",
    "drivers/vhost/vhost",
    "drivers/vhost/vhost_net",
)
NODES, CPUS_OF_NODE = 2, 4
NODE_MB, VM_MB, HUGE_KB = 1536, 64, 2048
VCPUS = CPUS_OF_NODE
CGROUPS = "/sys/fs/cgroup"
NODE = "/sys/devices/system/node/node"
DOMAINS, READY = "/run/domains", "/run/ready"
QEMU = "/usr/bin/qemu-system-x86_64"
PROGRAM = "/pretended_vm.py"
PATIENCE_S, POLL_S = 300, 0.2
VIRSH = f"""\
#!/bin/busybox sh
# A stand-in for libvirt's virsh: it prints files.
case "$*" in
"-r list --all --uuid") ls {DOMAINS} ;;
"-r dumpxml "*) cat {DOMAINS}/$3 ;;
*) echo "not known to the stand-in: $*" >&2; exit 1 ;;
esac
"""


def options():
    """Return QEMU's options for the guest."""
    nodes = [
        part
        for number, cpus in enumerate(("0-3", "4-7"))
        for part in (
            *("-object", f"memory-backend-ram,id=m{number},size={NODE_MB}M"),
            *("-numa", f"node,nodeid={number},cpus={cpus},memdev=m{number}"),
        )
    ]
    return (
        *("-smp", f"{NODES * CPUS_OF_NODE},sockets={NODES},cores={CPUS_OF_NODE}"),
        *("-m", f"{NODE_MB * NODES}"),
        *nodes,
    )


class VM:
    """One of its VMs.

    :ivar number: from 1 on; it has all CPUs of the node before
    """

    def __init__(self, number, seen):
        self.number, self.node, self.name = number, number - 1, f"instance-{number:08x}"
        self.cpus = own_cpus(number)
        self.cgroup = f"{CGROUPS}{scope(number)}/libvirt"
        self.pid, self.threads = seen["pid"], seen["threads"]

    def cpuset(self, group, kind):
        """Return the file of CPUs (cpus) or memory (mems) of one of its cgroups."""
        return f"{self.cgroup}/{group}/cpuset.{kind}"


def own_cpus(number):
    """Return the CPUs of the VM with a number."""
    return list(range(CPUS_OF_NODE * (number - 1), CPUS_OF_NODE * number))


def scope(number):
    """Return the cgroup that systemd makes for a VM, escaped as it does."""
    name = f"machine-qemu\\x2d{number}\\x2dinstance\\x2d{number:08x}"
    return f"/machine.slice/{name}.scope"


class Hypervisor(machine.Guest):
    """The guest, with root in it."""

    def __init__(self, directory):
        super().__init__(
            directory, vcpus=NODES * CPUS_OF_NODE, queues=1, options=options()
        )
        self.vms = {}

    def _setUp(self):  # noqa: N802
        super()._setUp()
        self.write("/usr/bin/virsh", VIRSH)
        self.write(PROGRAM, pathlib.Path(pretended_vm.__file__).read_text())
        self.shell(f"""
            chmod +x /usr/bin/virsh
            ln -s python3 {QEMU}
            mkdir -p {DOMAINS} {READY}
            mount -t cgroup2 cgroup2 {CGROUPS}""")

    def start(self, *numbers, hugepages=()):
        """Start VMs as Nova and libvirt do, each on the CPUs and memory of its node.

        :param hugepages: the numbers of those that have huge pages
        """
        for number in numbers:
            self._launch(number, huge=number in hugepages)
        for number in numbers:
            self.vms[number] = self._bound(number)
            self.describe(number, huge=number in hugepages)

    def _launch(self, number, *, huge):
        node, own = number - 1, own_cpus(number)
        if huge:
            self.reserve(node)
        groups = {"emulator": f"{own[0]}-{own[-1]}"}
        groups |= {f"vcpu{vcpu}": f"{cpu}" for vcpu, cpu in enumerate(own)}
        self.shell(self._cgroups(number, groups))
        emulator = f"{CGROUPS}{scope(number)}/libvirt/emulator"
        command = (
            f"{QEMU} {PROGRAM} -name guest=instance-{number:08x},debug-threads=on "
            f"-uuid {hosts.UUIDS[number - 1]} -smp {VCPUS} -m {VM_MB} -node {node} "
            f"-ready {READY}/{number}" + " -hugepages" * huge
        )
        self.shell(f"""
            (echo 0 >'{emulator}/cgroup.procs'; exec {command}) >/dev/console 2>&1 &""")

    def _bound(self, number):
        """Put the threads of a VM's vCPUs into their cgroups; return the VM."""
        vm = VM(number, json.loads(self._await("cat", f"{READY}/{number}")))
        for vcpu in range(VCPUS):
            thread = vm.threads[f"CPU {vcpu}/KVM"]
            self.write(f"{vm.cgroup}/vcpu{vcpu}/cgroup.threads", thread)
        return vm

    def _cgroups(self, number, groups):
        """Return the script that makes cgroups of a VM: {name: CPUs}."""
        above = [CGROUPS]
        for name in (*scope(number).split("/")[1:], "libvirt"):
            above.append(f"{above[-1]}/{name}")
        lines = [f"mkdir -p '{above[-1]}'"]
        for name in groups:
            lines += [f"mkdir '{above[-1]}/{name}'"]
            lines += [f"echo threaded >'{above[-1]}/{name}/cgroup.type'"]
        lines += [f"echo +cpuset >'{path}/cgroup.subtree_control'" for path in above]
        for name, cpus in groups.items():
            lines += [f"echo {cpus} >'{above[-1]}/{name}/cpuset.cpus'"]
            lines += [f"echo {number - 1} >'{above[-1]}/{name}/cpuset.mems'"]
        return "\n".join(lines)

    def _await(self, *command):
        """Run a command until it succeeds; return what it prints."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            status, output, errors = self.run(*command)
            if not status:
                return output
            time.sleep(POLL_S)
        console = self.console.read_text(errors="replace")[-2000:]
        message = f"{' '.join(command)}: {output}{errors}\n{console}"
        raise AssertionError(message)

    def describe(self, number, pins=None, *, huge=False):
        """Write what virsh says of a VM.

        :param pins: the CPU of each vCPU, those of its node if not given
        """
        xml = hosts.domain_xml(
            number,
            list(map(str, pins or own_cpus(number))),
            gb=1,
            pages_kb=HUGE_KB if huge else None,
            queues=VCPUS,
            own=own_cpus(number),
        )
        # The flavor's memory would take long to touch.
        xml = xml.replace(f">{2**20}<", f">{VM_MB * 1024}<")
        self.write(f"{DOMAINS}/{hosts.UUIDS[number - 1]}", xml)

    def reserve(self, node):
        """Reserve huge pages for a VM on a node."""
        pages = f"{NODE}{node}/hugepages/hugepages-{HUGE_KB}kB/nr_hugepages"
        self.write(pages, VM_MB * 1024 // HUGE_KB)

    def await_allowed(self, thread, cpus):
        """Wait until the kernel lets a thread run on CPUs, and on no others."""
        self._await("grep", f"Cpus_allowed_list:.{cpus}$", f"/proc/{thread}/status")

    def collect(self):
        """Return what the collect script shows in the guest."""
        script = pathlib.Path(collector.__file__).read_text(encoding="utf-8")
        status, output, errors = self.run(
            *("python3", "-", "host", "--interval", "0"), stdin=script
        )
        if status:
            raise AssertionError(errors)
        return reading.loads(output, "the guest")
