# SPDX-License-Identifier: Apache-2.0
"""A machine that ssh reaches: a network namespace with a server of its own in it."""

import os
import pathlib
import subprocess
import time
import uuid

import fixtures

SSHD = "/usr/sbin/sshd"
PORT = 2222
PATIENCE_S = 60
# Where Debian's server wants an empty directory, in a file system of its own.
START = "mount -t tmpfs none /run && mkdir /run/sshd && exec {} -D -e -f {}"
CONFIGURATION = """\
ListenAddress {address}:{port}
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
Subsystem sftp internal-sftp
"""


CLIENT = """\
Host {name}
  HostName {address}
  Port {port}
  IdentityFile {key}
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
"""


def client(name, machine):
    """Return what tells ssh how a machine is reached by a name."""
    return CLIENT.format(
        name=name, address=machine.address, port=machine.port, key=machine.key
    )


class Machine(fixtures.Fixture):
    """A machine of an address of its own.

    :ivar address: where it is, and ``port``
    :ivar gateway: an address of this machine, for it and others like it
    :ivar key: path of the key that opens it
    :ivar options: words for ssh: they leave the user's own configuration alone
    :ivar programs: a directory of programs that it finds before this machine's
    :param hostname: a name of its own, and a home without what a shell reads there
        (default: those of this machine)
    """

    port = PORT

    def __init__(self, hostname=None):
        self.hostname = hostname

    def _setUp(self):  # noqa: N802
        self.namespace = f"perfvm-{uuid.uuid4().hex[:8]}"
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self._ip("netns", "add", self.namespace)
        self.addCleanup(self._ip, "netns", "del", self.namespace)
        # Connections outlive the server that has accepted them.
        self.addCleanup(self._end_all)
        self._link()
        self.key = directory / "key"
        for name in ("key", "host_key"):
            self._do(
                "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / name
            )
        public = (directory / "host_key.pub").read_text()
        (directory / "known").write_text(f"[{self.address}]:{PORT} {public}")
        self.options = (
            *("-F", "none", "-o", f"UserKnownHostsFile={directory}/known"),
            *("-o", "IdentitiesOnly=yes"),
        )
        self.programs = directory / "programs"
        self.programs.mkdir()
        path = f"{self.programs}:{os.environ['PATH']}"
        home = f" HOME={directory}" if self.hostname else ""
        configuration = directory / "sshd_config"
        configuration.write_text(
            CONFIGURATION.format(address=self.address, port=PORT, directory=directory)
            + f"SetEnv PATH={path}{home}\n"
        )
        self.log = directory / "log"
        start = START.format(SSHD, configuration)
        if self.hostname:
            start = f"hostname {self.hostname} && {start}"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self._inside("unshare", "--uts", "sh", "-c", start),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self._wait()

    def _link(self):
        """Connect the namespace to a network of two addresses, of its own."""
        taken = subprocess.run(
            ("ip", "-o", "-4", "address"), check=True, capture_output=True, text=True
        ).stdout
        net = next(net for n in range(256) if f" {(net := f'10.98.{n}')}." not in taken)
        self.address = f"{net}.2"
        here = f"pv{self.namespace[-8:]}"
        self._ip(
            *("link", "add", here, "type", "veth"),
            *("peer", "name", "eth0", "netns", self.namespace),
        )
        self._ip("address", "add", f"{net}.1/30", "dev", here)
        self._ip("link", "set", here, "up")
        inside = ("-n", self.namespace)
        self._ip(*inside, "address", "add", f"{self.address}/30", "dev", "eth0")
        for name in ("lo", "eth0"):
            self._ip(*inside, "link", "set", name, "up")
        self.gateway = f"{net}.1"
        self._ip(*inside, "route", "add", "default", "via", self.gateway)

    def _wait(self):
        deadline = time.monotonic() + PATIENCE_S
        while "Server listening" not in self.log.read_text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"sshd does not listen: {self.log.read_text()}")
            time.sleep(0.05)

    def _end_all(self):
        found = subprocess.run(
            ("ip", "netns", "pids", self.namespace),
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        if found:
            subprocess.run(("kill", "-KILL", *found), check=False, capture_output=True)

    def _inside(self, *argv):
        return ("ip", "netns", "exec", self.namespace, *argv)

    def _ip(self, *argv):
        self._do("ip", *argv)

    @staticmethod
    def _do(*argv):
        subprocess.run(argv, check=True, capture_output=True)
