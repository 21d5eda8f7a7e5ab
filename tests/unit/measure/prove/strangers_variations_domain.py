# SPDX-License-Identifier: Apache-2.0
"""Harmless variations of libvirt's XML and Nova's: {name: edit of a case}."""

from tests.unit.measure.prove.strangers_edits import (
    changed,
    in_xml,
    on_host,
    pid,
    together,
)

NIC = "<driver name='vhost' queues='20'/>"
DRIVER = "<driver name='qemu' type='raw' cache='none' io='native'/>"

VARIATIONS = {
    "double quotes": in_xml(("mode='strict'", 'mode="strict"')),
    "libvirt 8: no index of sources": in_xml((" index='1'", "")),
    "libvirt 11: aliases and addresses": in_xml(
        (
            "<target dev='vda' bus='virtio'/>",
            (
                "<target dev='vda' bus='virtio'/>\n      <alias name='virtio-disk0'/>\n"
                "      <address type='pci' domain='0x0000' bus='0x04' slot='0x00' "
                "function='0x0'/>"
            ),
        ),
        (
            "<model type='virtio'/>",
            (
                "<model type='virtio'/>\n      <mtu size='1500'/>\n"
                "      <alias name='net0'/>\n      <address type='pci' domain='0x0000' "
                "bus='0x03' slot='0x00' function='0x0'/>"
            ),
        ),
    ),
    "attributes in another order": in_xml(
        (NIC, "<driver queues='20' name='vhost'/>"),
        (
            DRIVER,
            "<driver io='native' cache='none' type='raw' name='qemu'/>",
        ),
    ),
    "period without a quota": in_xml(
        ("  <cputune>\n", "  <cputune>\n    <shares>1024</shares>\n")
    ),
    "seclabel and resource partition": in_xml(
        (
            "</devices>\n",
            (
                "</devices>\n  <seclabel type='dynamic' model='dac' relabel='yes'>"
                "<label>+64055:+993</label><imagelabel>+64055:+993</imagelabel></seclabel>\n"
                "  <resource><partition>/machine</partition></resource>\n"
            ),
        )
    ),
    "host-passthrough": together(
        on_host(
            {
                f"/proc/{pid(n)}/cmdline": changed(
                    "Cascadelake-Server,ss=on,hypervisor=on,hle=off,rtm=off",
                    "host,migratable=on,hle=off,rtm=off",
                )
                for n in (1, 2)
            }
        ),
        in_xml(
            (
                (
                    "<cpu mode='custom' match='exact' check='full'>\n"
                    "    <model fallback='forbid'>Cascadelake-Server</model>\n"
                    "    <vendor>Intel</vendor>\n"
                ),
                "<cpu mode='host-passthrough' check='none' migratable='on'>\n",
            )
        ),
    ),
    "host-model with a cache passed through": in_xml(
        ("<vendor>Intel</vendor>", "<vendor>Intel</vendor><cache mode='passthrough'/>")
    ),
    "machine of pc": together(
        in_xml(("machine='pc-q35-9.2'", "machine='pc-i440fx-8.2'")),
        on_host(
            {
                f"/proc/{pid(n)}/cmdline": changed("pc-q35-9.2", "pc-i440fx-8.2")
                for n in (1, 2)
            }
        ),
    ),
    "RHEL's machine": together(
        in_xml(("machine='pc-q35-9.2'", "machine='pc-q35-rhel9.4.0'")),
        on_host(
            {
                f"/proc/{pid(n)}/cmdline": changed("pc-q35-9.2", "pc-q35-rhel9.4.0")
                for n in (1, 2)
            }
        ),
    ),
    "QEMU is qemu-kvm": together(
        in_xml(("/usr/bin/qemu-system-x86_64", "/usr/libexec/qemu-kvm")),
        on_host(
            {
                name: text
                for n in (1, 2)
                for name, text in (
                    (
                        f"/proc/{pid(n)}/cmdline",
                        changed("/usr/bin/qemu-system-x86_64", "/usr/libexec/qemu-kvm"),
                    ),
                    (f"/proc/{pid(n)}/comm", "qemu-kvm\n"),
                )
            }
        ),
    ),
    "Nova 31": in_xml(('version="34.0.0"', 'version="31.1.0"')),
    "Nova 32 of a distribution": in_xml(
        ('version="34.0.0"', 'version="32.0.0-0ubuntu1"')
    ),
    "no I/O thread, as Nova 31 and 32 write": in_xml(
        ("  <iothreads>1</iothreads>\n", ""),
        ("    <iothreadpin iothread='1' cpuset='0-19'/>\n", ""),
        vms=(1,),
    ),
    "an I/O thread that the disk uses": in_xml(
        ("io='native'/>", "io='native' iothread='1'/>")
    ),
    "a memballoon of no model": in_xml(
        (
            "<memballoon model='virtio' autodeflate='on' freePageReporting='on'/>",
            "<memballoon model='none'/>",
        )
    ),
    "a random number generator and a watchdog": in_xml(
        (
            "    <memballoon",
            (
                "    <rng model='virtio'><backend model='random'>/dev/urandom</backend>"
                "</rng>\n    <watchdog model='i6300esb' action='reset'/>\n   "
                " <memballoon"
            ),
        )
    ),
    "VNC, serial console and channel": in_xml(
        (
            "    <memballoon",
            (
                "    <graphics type='vnc' port='5900' autoport='yes' "
                "listen='0.0.0.0'/>\n"
                "    <serial type='pty'><log file='/var/lib/nova/c.log' append='off'/>"
                "</serial>\n    <channel type='unix'><target type='virtio' "
                "name='org.qemu.guest_agent.0'/></channel>\n    <memballoon"
            ),
        )
    ),
    "UEFI and secure boot": in_xml(
        (
            "hvm</type></os>",
            (
                "hvm</type><loader readonly='yes' secure='yes' "
                "type='pflash'>/usr/share/OVMF/"
                "OVMF_CODE_4M.secboot.fd</loader><nvram>/var/lib/libvirt/qemu/nvram/i.fd"
                "</nvram></os>"
            ),
        ),
        ("<acpi/><apic/>", "<acpi/><apic/><smm state='on'/>"),
    ),
    "a vTPM and vGPU's absence": in_xml(
        (
            "    <memballoon",
            (
                "    <tpm model='tpm-crb'><backend type='emulator' "
                "version='2.0'/></tpm>\n"
                "    <video><model type='virtio' heads='1' primary='yes'/></video>\n"
                "    <memballoon"
            ),
        )
    ),
    "config drive of a CD": in_xml(
        (
            "    <interface type='bridge'>",
            (
                "    <disk type='file' device='cdrom'>\n"
                "      <driver name='qemu' type='raw' cache='none'/>\n"
                "      <source file='/var/lib/nova/instances/u/disk.config' "
                "index='2'/>\n"
                "      <target dev='sda' bus='sata'/>\n      <readonly/>\n    </disk>\n"
                "    <interface type='bridge'>"
            ),
        )
    ),
    "a second volume": in_xml(
        (
            "    <interface type='bridge'>",
            (
                "    <disk type='block' device='disk'>\n"
                "      <driver name='qemu' type='raw' cache='none' io='native'/>\n"
                "      <source dev='/dev/nvme2n1' index='3'/>\n"
                "      <target dev='vdb' bus='virtio'/>\n"
                "      <serial>1a1b2c3d-4e5f-6789-abcd-ef0000000001</serial>\n"
                "    </disk>\n"
                "    <interface type='bridge'>"
            ),
        )
    ),
    "Cinder's volume in RBD": in_xml(
        (
            (
                "<disk type='block' device='disk'>\n"
                f"      {DRIVER}\n      <source dev='/dev/nvme1n1' index='1'/>"
            ),
            (
                "<disk type='network' device='disk'>\n"
                "      <driver name='qemu' type='raw' cache='none' discard='unmap'/>\n"
                "      <source protocol='rbd' name='volumes/volume-{n}' index='1'>"
                "<host name='192.0.2.41' port='6789'/></source>"
            ),
        )
    ),
    "Cinder's volume by multipath": in_xml(
        ("<source dev='/dev/nvme1n1'", "<source dev='/dev/dm-{n}'")
    ),
    "io_uring": in_xml(("io='native'", "io='io_uring'")),
    "discard and zeroes": in_xml(
        ("io='native'", "io='native' discard='unmap' detect_zeroes='unmap'")
    ),
    "queues of the disk, as hw_disk_bus virtio has": in_xml(
        ("io='native'", "io='native' queues='20'")
    ),
    "receive queues of 1024": in_xml(
        (NIC, "<driver name='vhost' queues='20' rx_queue_size='1024'/>")
    ),
    "bridge of OVS": in_xml(
        (
            "      <target dev='tap{n}'/>",
            (
                "      <source bridge='br-int'/>\n      <virtualport "
                "type='openvswitch'>"
                "<parameters interfaceid='0b7c0a42-9e5f-4b8f-8b0b-7f1a2f0a{n}000'/>"
                "</virtualport>\n      <target dev='tap{n}'/>"
            ),
        )
    ),
    "ethernet interface of os-vif": in_xml(
        ("<interface type='bridge'>", "<interface type='ethernet'>")
    ),
    "flavor's traits and resources in the metadata": in_xml(
        (
            "</nova:extraSpecs>",
            (
                '<nova:extraSpec name="resources:CUSTOM_PERFVM_SLOT">1</nova:extraSpec>'
                '<nova:extraSpec name="trait:CUSTOM_PERFVM_HIGH_PERFORMANCE">required'
                "</nova:extraSpec></nova:extraSpecs>"
            ),
        )
    ),
}
