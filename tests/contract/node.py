# SPDX-License-Identifier: Apache-2.0
"""A node on which stack.sh, unstack.sh and clean.sh run their plugins."""

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
HARNESS = Path(__file__).parent / "harness.sh"

# The tree of a real DevStack, or none for the doubles.
DEVSTACK_DIR = os.environ.get("DEVSTACK_DIR", "")


@functools.cache
def _answers():
    """Return the directory where this process keeps answers of the real command."""
    directory = tempfile.mkdtemp(prefix="perfvm-answers-")
    atexit.register(shutil.rmtree, directory)
    return directory


class Node:
    """One machine of a test: its files stay from script to script.

    :ivar output: what the last script printed
    """

    def __init__(self, directory, localrc="", local_conf="", other="", hosts=""):
        self.directory = Path(directory)
        self.project = ROOT
        self.hosts = hosts
        self.output = ""
        self.write("localrc", localrc)
        self.write("top/local.conf", local_conf)
        self.write("other.sh", other)

    def write(self, name, text):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, mode, until=""):
        """Run a script, and give its exit status."""
        for name in ("calls", "leaks", "phases", "races"):
            self.write(name, "")
        result = subprocess.run(
            ["bash", str(HARNESS), mode],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            cwd=self.directory,
            env=os.environ
            | {
                "CONTRACT_ANSWERS": _answers(),
                "CONTRACT_HOSTS": self.hosts,
                "CONTRACT_PROJECT": str(self.project),
                "CONTRACT_PYTHON": sys.executable,
                "CONTRACT_SCRATCH": str(self.directory),
                "CONTRACT_UNTIL": until,
                "DEVSTACK_DIR": DEVSTACK_DIR,
                "PYTHONPATH": str(ROOT),
            },
        )
        self.output = result.stdout
        return result.returncode

    def read(self, name):
        return (self.directory / name).read_text(encoding="utf-8")

    def exists(self, name):
        return (self.directory / name).exists()

    def lines(self, name):
        return self.read(name).splitlines()

    def options(self, name):
        """Return an INI file's options: section, option -> the value of each line."""
        found = {}
        section = None
        for line in self.lines(name):
            if line.startswith("["):
                section = line.strip("[]")
            elif "=" in line:
                option, value = line.split("=", 1)
                found.setdefault((section, option.strip()), []).append(value.strip())
        return found

    @property
    def nova(self):
        return self.options("etc/nova/nova.conf")

    @property
    def nova_cpu(self):
        return self.options("etc/nova/nova-cpu.conf")

    @property
    def tempest(self):
        return self.options("tempest.conf")

    def calls(self, *words):
        """Return the calls of openstack and pip that have all these words."""
        return [
            line for line in self.lines("calls") if all(word in line for word in words)
        ]
