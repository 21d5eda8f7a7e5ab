# SPDX-License-Identifier: Apache-2.0
"""A guest that ssh reaches through a machine, which plays its host."""

import os
import shutil

from tests.guest import image, machine
from tests.measure import machine as machines
from tests.unit.measure import hosts

TOOLS = ("sysbench", "iperf3", "cyclictest")
# Busybox's shell would take its own timeout, date and sleep for them.
PROGRAMS = (machines.SSHD, *TOOLS, "dash", "lscpu", "timeout", "date", "sleep")
# What ends a thread is in no program's list of libraries.
MORE = (("libgcc-s1",), (), PROGRAMS)
VCPUS, MEMORY_MB = 2, 2048
DIRECTORY = "/etc/ssh"
USERS = "root:x:0:0::/root:/usr/bin/dash\nsshd:x:101:65534::/run/sshd:/bin/false\n"
VIRSH = """\
#!/bin/sh
# A stand-in for libvirt's virsh: it knows of the guest.
case "$*" in
"-r list --all --uuid") echo {uuid} ;;
"-r dumpxml {uuid}") cat {xml} ;;
*) echo "not known to the stand-in: $*" >&2; exit 1 ;;
esac
"""


def missing():
    """Return why there can be no such guest; empty if there can."""
    needed = (*machine.NEEDED, *PROGRAMS, "ssh", "ssh-keygen")
    absent = [name for name in needed if shutil.which(name) is None]
    if absent:
        return f"not installed: {', '.join(absent)}"
    return "networks need root" if os.geteuid() else ""


class Reached(machine.Guest):
    """The guest, small, for emulation is slow.

    :ivar address: where it is, and ``port``
    :ivar key: path of the key that opens it
    :param host: the machine whose network it is in; its key opens it
    """

    address, port = image.ADDRESS, 22

    def __init__(self, directory, host):
        identity = (
            "-name",
            "guest=instance-00000001,debug-threads=on",
            "-uuid",
            hosts.UUIDS[0],
        )
        super().__init__(
            *(directory, VCPUS, VCPUS),
            ("-m", str(MEMORY_MB), *identity),
            host.namespace,
        )
        self.host, self.key = host, host.key

    def _setUp(self):  # noqa: N802
        super()._setUp()
        self.shell(f"mkdir -p {DIRECTORY} /run/sshd /root")
        self.write("/etc/passwd", USERS)
        for path in (self.key.with_name("key.pub"), self.key.with_name("host_key")):
            self.write(f"{DIRECTORY}/{path.name}", path.read_text())
        configuration = machines.CONFIGURATION.format(
            address=self.address, port=self.port, directory=DIRECTORY
        )
        self.write(f"{DIRECTORY}/sshd_config", configuration)
        self.shell(f"""
            ln -sf /usr/bin/dash /bin/sh
            chmod 600 {DIRECTORY}/host_key
            /usr/bin/sshd""")

    def describe(self, flavor):
        """Have virsh on the host tell of the guest.

        :param flavor: that Nova has noted
        """
        own = list(range(VCPUS))
        xml = hosts.domain_xml(1, gb=MEMORY_MB // 1024, queues=VCPUS, own=own)
        name = f"hp.{VCPUS}c.{MEMORY_MB // 1024}g"
        for old, new in (("'kvm'", "'qemu'"), ("'tap1'", "'tap0'"), (name, flavor)):
            xml = xml.replace(old, new)
        path = self.host.programs / "domain.xml"
        path.write_text(xml)
        virsh = path.with_name("virsh")
        virsh.write_text(VIRSH.format(uuid=hosts.UUIDS[0], xml=path))
        virsh.chmod(0o755)
