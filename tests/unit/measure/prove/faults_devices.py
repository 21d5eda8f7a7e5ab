# SPDX-License-Identifier: Apache-2.0
"""Faults of a VM's interfaces and disks, and of how much memory it has."""

from dataclasses import replace

from tests.unit.measure import hosts
from tests.unit.measure.prove.faults import (
    GB,
    VMS,
    both,
    faults_of,
    host,
    own,
    policy,
    task,
    xml,
)
from tests.unit.measure.prove.faults_domain import scope
from tests.unit.rules.hosts import HP

DRIVER = "<driver name='qemu' type='raw' cache='none' io='native'/>"
SOURCE = "<source dev='/dev/nvme1n1' index='1'/>"
ASKED = replace(HP.disk, read_iops=20000, write_iops=10000)


def _limits(vm):
    target = f"<target dev='tap{vm}'/>"

    def capped(text):
        return xml(vm, (target, f"{target}<bandwidth>{text}</bandwidth>"))

    def tuned(more=None, **limits):
        text = "".join(f"<{n}>{value}</{n}>" for n, value in limits.items())
        change = xml(vm, (SOURCE, f"{SOURCE}<iotune>{text}</iotune>"))
        return both(change, more) if more else change

    asked = policy(disk=ASKED)
    device = "<device><path>/dev/sda</path><read_iops_sec>4000</read_iops_sec></device>"
    second = (
        f"<disk type='block' device='disk'>{DRIVER}<target dev='vdb' bus='virtio'/>"
    )
    second += "<iotune><read_iops_sec>20000</read_iops_sec><group_name>g</group_name>"
    return {
        "hypervisor.io_limits": {
            "what it receives is limited": capped("<inbound average='128000'/>"),
            "what it sends is limited": capped(
                "<outbound average='128000' peak='256000' burst='1000'/>"
            ),
            "IOPS that nobody asked for": tuned(total_iops_sec=5000),
            "bytes that nobody asked for": tuned(total_bytes_sec=104857600),
            "fewer reads than the policy's": tuned(asked, read_iops_sec=19999),
            "fewer writes than the policy's": tuned(asked, write_iops_sec=5000),
            "fewer in sum than the policy's": tuned(asked, total_iops_sec=20000),
            "bytes beside the policy's IOPS": tuned(
                asked, read_iops_sec=20000, read_bytes_sec=104857600
            ),
            "large ones count as many": tuned(
                asked, read_iops_sec=20000, size_iops_sec=4096
            ),
            "a burst above the policy's IOPS": tuned(
                asked,
                read_iops_sec=20000,
                read_iops_sec_max=50000,
                read_iops_sec_max_length=60,
            ),
            "two disks share their limit": both(
                tuned(asked, read_iops_sec=20000, group_name="g"),
                xml(vm, ("<interface ", f"{second}</iotune></disk><interface ")),
            ),
            "its filters throttle": xml(vm, (SOURCE, f"{SOURCE}<throttlefilters/>")),
            "blkiotune limits a device": xml(
                vm,
                (
                    "  <numatune>",
                    f"<blkiotune>{device}</blkiotune><numatune>",
                ),
            ),
            "its cgroup limits a device": host(
                {f"{scope(vm)}/io.max": "259:3 rbps=max wbps=1048576 riops=max\n"}
            ),
            "limits of devices were not read": host({f"{scope(vm)}/io.max": None}),
        },
    }


def _devices(vm):
    model = "<model type='virtio'/>"
    vhost = "<driver name='vhost' queues='20'/>"
    machine = "machine='pc-q35-9.2'"
    pid = hosts.FIRST_PID + 100 * vm
    threads = [task(vm, number) for number in (2, *range(41, 60))]
    hidden = {f"{path}/comm": None for path in threads}
    network = policy(disk=replace(HP.disk, source="volume"))
    local = f"<source file='/var/lib/nova/instances/{hosts.UUIDS[vm - 1]}/disk'/>"
    serial = f"<serial>0a1b2c3d-4e5f-6789-abcd-ef000000000{vm}</serial>"

    scsi = "<controller type='scsi' {}><driver queues='{}'/></controller>"
    good = scsi.format("index='0' model='virtio-scsi'", 20)

    def disk(old, new):
        return xml(vm, (DRIVER, DRIVER.replace(old, new)))

    return {
        "hypervisor.virtual_devices": {
            "an e1000": xml(vm, (model, "<model type='e1000'/>")),
            "QEMU itself moves packets": xml(
                vm, (vhost, vhost.replace("vhost", "qemu"))
            ),
            "vhost has no thread": host(hidden),
            "vhost has 8 threads of 20": host(dict(list(hidden.items())[8:])),
            "its offloads are off": xml(
                vm,
                (vhost, vhost.replace("/>", "><host tso4='off' gso='off'/></driver>")),
            ),
            **{
                f"a disk on {bus}": xml(vm, ("bus='virtio'", f"bus='{bus}'"))
                for bus in ("ide", "sata", "usb")
            },
            "a LUN on sata": xml(
                vm, ("device='disk'", "device='lun'"), ("bus='virtio'", "bus='sata'")
            ),
            "a LUN has cache writeback": both(
                xml(vm, ("device='disk'", "device='lun'")),
                disk("cache='none'", "cache='writeback'"),
            ),
            **{
                f"a SCSI controller {words}": xml(
                    vm,
                    ("bus='virtio'/>", "bus='scsi'/><address controller='1'/>"),
                    ("<interface ", f"{good}{bad}<interface "),
                )
                for words, bad in (
                    ("of lsilogic", scsi.format("index='1' model='lsilogic'", 20)),
                    ("without a model", scsi.format("index='1'", 20)),
                    ("of one queue", scsi.format("index='1' model='virtio-scsi'", 1)),
                )
            },
            **{
                f"cache {mode}": disk("cache='none'", f"cache='{mode}'")
                for mode in ("writeback", "unsafe")
            },
            "cache as QEMU has it": disk(" cache='none'", ""),
            "a file of Nova's for a volume": both(
                network, xml(vm, (SOURCE, local), (serial, ""))
            ),
            "layers of a qcow2 for a volume": both(
                network,
                xml(vm, ("<backingStore/>", "<backingStore type='file'/>")),
            ),
            **{
                f"machine {name}": xml(vm, (machine, f"machine='{name}'"))
                for name in (
                    *("pc-i440fx-4.2", "pc-q35-5.1", "pc-i440fx-rhel7.6.0"),
                    *("pc-q35-rhel8.2.0", "pc-i440fx-focal", "pc-q35-bionic-hpb"),
                )
            },
            "one disk queue": disk("/>", " queues='1'/>"),
            "its threads were not collected": host(
                {f"/proc/{pid}/comm": None} | hidden
            ),
        },
    }


def _memory(vm):
    node, far = vm - 1, 2 - vm
    current = f"<currentMemory unit='KiB'>{128 * GB}"
    maps = f"/proc/{hosts.FIRST_PID + 100 * vm}/numa_maps"
    events = f"{scope(vm)}/memory.events"
    mine, alien = own(vm), own(3 - vm)
    cell = "<cell id='0' cpus='0-19' memory='134217728' unit='KiB'/>"
    cells = "".join(
        f"<cell id='{n}' cpus='{cpus}' memory='{64 * GB}' unit='KiB'/>"
        for n, cpus in enumerate(("0-9", "10-19"))
    )
    pins = [
        (
            f"<vcpupin vcpu='{v}' cpuset='{mine[v]}'/>",
            f"<vcpupin vcpu='{v}' cpuset='{alien[v]}'/>",
        )
        for v in range(10, 20)
    ]
    weighed = (
        f"7f0 bind:{node} file=/dev/hugepages/libvirt/qemu/1-i/ram huge "
        f"N{far}=96 kernelpagesize_kB=1048576\n"
        f"7f1 default anon=1 N{node}=9000000 kernelpagesize_kB=4\n"
    )
    return {
        "hypervisor.memory_whole": {
            **{
                f"its balloon leaves it {gb} GiB": xml(
                    vm, (current, current.replace(str(128 * GB), str(gb * GB)))
                )
                for gb in (64, 127)
            },
            **{
                f"{gb} of 128 GiB were ever written": host(
                    {maps: hosts.numa_maps({node: gb * GB})}
                )
                for gb in (1, 64, 110)
            },
            "its memory was reclaimed": host(
                {events: hosts.MEMORY_EVENTS.format(high=4)},
                later={events: hosts.MEMORY_EVENTS.format(high=4011)},
            ),
            "whether it was reclaimed was not read": host({events: None}),
        },
        "hypervisor.memory_local": {
            "96 huge pages on the other node, many small ones here": host(
                {maps: weighed}
            ),
            "two cells, 126 of 128 GiB on one node": both(
                xml(vm, (cell, cells), *pins),
                host({maps: hosts.numa_maps({node: 126 * GB, far: 2 * GB})}),
            ),
            "two cells, both on one node": both(
                xml(vm, (cell, cells), *pins),
                host({maps: hosts.numa_maps({node: 128 * GB})}),
            ),
        },
    }


FAULTS = [
    f
    for vm in VMS
    for table in (_limits, _devices, _memory)
    for f in faults_of(table(vm), f"vm{vm}: ")
]
