# SPDX-License-Identifier: Apache-2.0
"""Small archives and a sosreport, as tests need them."""

import io
import json
import tarfile

from nova_perfvm.measure import collector

TOP = "sosreport-compute1-2026-11-22-abcdefg"
UUID = "0f5a1c2e-1111-4222-8333-444455556666"
XML = f"<domain type='kvm'>\n  <name>instance-1</name>\n  <uuid>{UUID}</uuid>\n"
PCI = "sys/devices/pci0000:00/0000:00:03.0"
# As sos 4 names and links them.
SOSREPORT = {
    "version.txt": "sosreport: 4.8.2\n",
    "proc/interrupts": "           CPU0\n",
    "proc/stat": "cpu 1\n",
    "proc/cmdline": "quiet\n",
    "proc/7/status": "Name:\tqemu-kvm\nCpus_allowed_list:\t0-3\n",
    "proc/7/cgroup": "0::/machine.slice/vm.scope\n",
    "proc/7/numa_maps": "7f bind:0 anon=1 N0=1\n",
    "proc/7/smaps": "not looked at",
    "proc/8/status": "Name:\tbash\n",
    "sys/fs/cgroup/machine.slice/vm.scope/cpuset.cpus.effective": "0-3\n",
    f"{PCI}/net/eth0/mtu": "1500\n",
    f"{PCI}/net/eth0/statistics/rx_packets": "12\n",
    f"{PCI}/numa_node": "1\n",
    "sys/devices/system/node/node0/cpulist": "0-3\n",
    "sos_commands/host/hostname": "compute1\n",
    "sos_commands/networking/ethtool_-l_eth0": "Combined:\t20\n",
    "sos_commands/networking/ethtool_-S_eth0": "no stats available\n",
    "sos_commands/virsh/virsh_-r_dumpxml_instance-1": XML,
    "sos_commands/virsh/virsh_-r_dumpxml_gone": "error: failed to get domain 'gone'",
    "sos_commands/virsh/virsh_-r_capabilities": "<capabilities/>\n",
    "sos_strings/networking/ethtool_-i_eth0.tailed": "its end",
}
LINKS = {
    "sys/class/net/eth0": "../../devices/pci0000:00/0000:00:03.0/net/eth0",
    f"{PCI}/net/eth0/device": "../../../0000:00:03.0",
    f"{PCI}/driver": "../../../bus/pci/drivers/mlx5_core",
    "sys/block/sda": "../devices/../../../../etc/shadow",
    "sys/block/vda": "vdb",
    "sys/block/vdb": "vda",
    "sos_commands/networking/ethtool_-i_eth0": "../../sos_strings/networking/"
    "ethtool_-i_eth0.tailed",
}
EXIT_CODES = {
    "sos_commands/networking/ethtool_-l_eth0": 0,
    "sos_commands/networking/ethtool_-S_eth0": 94,
    "sos_commands/virsh/virsh_-r_capabilities": 124,
}


def manifest(exit_codes):
    """Return sos_reports/manifest.json."""
    commands = [
        {"filepath": path, "return_code": code} for path, code in exit_codes.items()
    ]
    plugins = {"networking": {"commands": commands}}
    return json.dumps({"components": {"report": {"plugins": plugins}}})


def member(name, text="", **fields):
    """Return a member of an archive, and its data."""
    info = tarfile.TarInfo(name)
    data = text.encode()
    info.size, info.mtime = len(data), 1_795_000_000
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def packed(members, mode="w:gz"):
    """Return the bytes of an archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def sosreport(files=SOSREPORT, links=LINKS):
    """Return the members of a sosreport."""
    found = [member(f"{TOP}/{name}", text) for name, text in files.items()]
    return found + [
        member(f"{TOP}/{name}", type=tarfile.SYMTYPE, linkname=target)
        for name, target in links.items()
    ]


def document(**changes):
    """Return what a collector could have written."""
    return {
        "schema_version": collector.SCHEMA_VERSION,
        "kind": "guest",
        "hostname": "vm1",
        "taken_at": "2026-11-22T10:00:00+00:00",
        "interval_s": 5.001,
        "files": {"/proc/stat": "cpu 1\n", "/proc/cmdline": "quiet\n"},
        "later": {"/proc/stat": "cpu 2\n"},
        "links": {"/sys/class/net/eth0": "../../devices/virtio0/net/eth0"},
        "commands": {
            "ethtool -l eth0": {
                "exit_code": 0,
                "stdout": "Combined:\t20\n",
                "stderr": "",
            }
        },
        "unread": {"/proc/7/numa_maps": "permission denied", "virsh": "no"},
    } | changes
