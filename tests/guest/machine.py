# SPDX-License-Identifier: Apache-2.0
"""A guest that runs, in a network namespace of its own."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import uuid

import fixtures
import testtools

from tests.guest import agent, image

NEEDED = ("qemu-system-x86_64", "ip", "cpio", "apt-get", "dpkg")
GATEWAY = "10.99.0.1/24"
# On two busy cores a kernel of 20 CPUs takes minutes to boot.
PATIENCE_S = 900
POLL_S = 0.5
_KERNEL = "console=ttyS0 quiet panic=-1 tsc=unstable"
# Sends small packets over connections of its own each, until it is told to end.
FLOWS = """
import socket, sys, threading, time
address, port, flows, seconds = sys.argv[1], *map(int, sys.argv[2:])
end = time.monotonic() + seconds
connections = [socket.create_connection((address, port)) for _ in range(flows)]
def talk(connection):
    while time.monotonic() < end:
        connection.sendall(b"x" * 64)
        connection.recv(64)
threads = [threading.Thread(target=talk, args=(each,)) for each in connections]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
ASK = """
import socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
connection.settimeout(None)
lines = connection.makefile("rwb")
for line in sys.stdin.buffer:
    lines.write(line)
    lines.flush()
    sys.stdout.buffer.write(lines.readline())
    sys.stdout.flush()
"""


class Guest(fixtures.Fixture):
    """A guest under QEMU's emulation, whose NIC and disk have queues.

    :param directory: that image.build made
    :param vcpus: of the guest
    :param queues: of its NIC and of its disk
    :param options: more for QEMU
    :param namespace: of the network that it is in (default: one of its own)
    """

    def __init__(self, directory, vcpus=20, queues=20, options=(), namespace=None):
        self.directory = pathlib.Path(directory)
        self.vcpus, self.queues, self.options = vcpus, queues, options
        self.namespace = namespace

    def _setUp(self):  # noqa: N802
        if self.namespace is None:
            self.namespace = f"perfvm-{uuid.uuid4().hex[:8]}"
            self._ip("netns", "add", self.namespace)
            self.addCleanup(self._ip, "netns", "del", self.namespace)
        several = ("multi_queue",) if self.queues > 1 else ()
        inside = ("-n", self.namespace)
        self._ip(*inside, "tuntap", "add", "tap0", "mode", "tap", *several)
        self._ip(*inside, "address", "add", GATEWAY, "dev", "tap0")
        self._ip(*inside, "link", "set", "tap0", "up")
        self.console = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "console")
        disk = self.console.with_name("disk")
        disk.touch()
        disk.open("r+b").truncate(1 << 20)
        self.process = subprocess.Popen(
            self._inside(*self._command(disk)),
            stdin=subprocess.DEVNULL,
            stdout=self.console.with_name("qemu").open("wb"),
            stderr=subprocess.STDOUT,
        )
        self.addCleanup(self._end, self.process)
        self._asking = self._connect()
        self.addCleanup(self._end, self._asking)

    def _command(self, disk):
        queues = f",queues={self.queues}" if self.queues > 1 else ""
        # Two for each pair, one for the configuration, one for control.
        several = f",mq=on,vectors={2 * self.queues + 2}" if self.queues > 1 else ""
        return (
            *("qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi"),
            *("-smp", str(self.vcpus), "-m", "768", "-nodefaults", "-nographic"),
            *("-serial", f"file:{self.console}", "-no-reboot"),
            *("-kernel", str(self.directory / "kernel")),
            *("-initrd", str(self.directory / "initrd")),
            # Ciphers that test themselves keep emulated CPUs busy for a minute.
            *("-append", f"{_KERNEL} cryptomgr.notests"),
            *("-netdev", "tap,id=net,ifname=tap0,script=no,downscript=no" + queues),
            *("-device", "virtio-net-pci,netdev=net" + several),
            *("-drive", f"file={disk},if=none,format=raw,id=disk"),
            *("-device", f"virtio-blk-pci,drive=disk,num-queues={self.queues}"),
            *self.options,
        )

    def _connect(self):
        """Wait until the guest's agent answers."""
        deadline = time.monotonic() + PATIENCE_S
        where = (image.ADDRESS, str(agent.COMMAND_PORT))
        while True:
            process = subprocess.Popen(
                self._inside(sys.executable, "-c", ASK, *where),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self._asking = process
            try:
                self.run("true")
            except (OSError, ValueError):
                self._end(process)
            else:
                return process
            if self.process.poll() is not None or time.monotonic() > deadline:
                said = self.console.with_name("qemu").read_text()
                seen = self.console.read_text(errors="replace")[-2000:]
                message = f"the guest does not answer: {said}\n{seen}"
                raise RuntimeError(message)
            time.sleep(POLL_S)

    def run(self, *argv, stdin=""):
        """Run a command in the guest; return exit code, output and errors."""
        asked = json.dumps({"argv": argv, "stdin": stdin})
        self._asking.stdin.write(asked + "\n")
        self._asking.stdin.flush()
        return tuple(json.loads(self._asking.stdout.readline()))

    def shell(self, script):
        """Run a script of the shell; it has to succeed."""
        status, output, errors = self.run("sh", "-e", stdin=script)
        if status:
            message = f"exit code {status} of {script}: {errors}"
            raise AssertionError(message)
        return output

    def write(self, path, text):
        """Write a file; what is no text as text."""
        status, _, errors = self.run("sh", "-c", f"cat >'{path}'", stdin=f"{text}")
        if status:
            message = f"{path}: {errors}"
            raise AssertionError(message)

    def talk(self, flows, seconds):
        """Return a process that talks to the guest over so many connections."""
        where = (image.ADDRESS, str(agent.ECHO_PORT), str(flows), str(seconds))
        return subprocess.Popen(self._inside(sys.executable, "-c", FLOWS, *where))

    def _inside(self, *argv):
        return ("ip", "netns", "exec", self.namespace, *argv)

    @staticmethod
    def _ip(*argv):
        subprocess.run(("ip", *argv), check=True, capture_output=True)

    @staticmethod
    def _end(process):
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()


class GuestCase(testtools.TestCase):
    """Tests of a class that share a guest."""

    @classmethod
    def started(cls, kind, *more, **options):
        """Return a guest that ends with the class.

        :param kind: Guest, or a kind of it
        :param more: what else its image has, see :func:`image.build`
        """
        if missing := [name for name in NEEDED if shutil.which(name) is None]:
            # It is printed, and CI counts it as a test that did not run.
            raise cls.skipException(f"not installed: {', '.join(missing)}")
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        image.build(directory.name, *more)
        guest = kind(directory.name, **options)
        guest.setUp()
        cls.addClassCleanup(guest.cleanUp)
        return guest
