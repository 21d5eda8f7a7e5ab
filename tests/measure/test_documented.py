# SPDX-License-Identifier: Apache-2.0
"""The commands of the pages about measuring, run as they are shown.

Files that they read are of a host and VMs without a fault, or are made by the commands
before.  ``ssh HOST`` and ``sudo`` are stand-ins that run the rest here.
"""

import dataclasses
import json
import os
import re
import subprocess
import sys

import yaml

from nova_perfvm.facts import snapshot
from nova_perfvm.measure import samples
from nova_perfvm.measure.collect import reading
from tests import documented, shown
from tests.measure import test_run
from tests.unit.measure import hosts
from tests.unit.measure.prove import sound
from tests.unit.sizing import test_disk

# {beginning of a command: exit statuses that are right}, where it is not 0 alone.
STATUSES = {
    # VMs own every CPU of a host of 2x20: a warning.
    "nova-perfvm host check": {1},
    "nova-perfvm bench compare": {3},
}
# Shorter than an operator would; a directory in memory cannot be read directly.
SHORTER = {"--size=20g": "--size=1m", "--runtime=300": "--runtime=1", "--direct=1": ""}
SCENARIO = {
    "schema_version": "1.0",
    "repeats": 1,
    "warm_up": 0,
    "targets": {
        "host": {"kind": "host", "node": 0},
        "vm1": {"kind": "guest"},
        "vm2": {"kind": "guest"},
    },
    "groups": {"alone": ["host"], "one": ["vm1"], "vms": ["vm1", "vm2"]},
    "tools": test_run.SYSBENCH
    | {
        "memory_bandwidth": {"threads": [1], "seconds": 1},
        "cyclictest": {"threads": [1], "seconds": 1},
    },
}
# Of what a command printed, where it is not what it should be.
MOST_SHOWN = 4000
STAND_INS = {
    "nova-perfvm": f"PYTHONPATH={shown.ROOT} exec {sys.executable} -c "
    f"'{test_run.COMMAND[2].replace(chr(39), chr(34))}' \"$@\"",
    "ssh": 'shift; exec "$@"',
    "sudo": 'exec "$@"',
}


def outputs(text):
    """Return the files that a command writes."""
    found = re.findall(r"(?:> |--output[ =])(\S+)", text)
    return [] if "--resume" in text else found


def spread_out(text):
    """Return a text as it is whatever the width of the terminal."""
    return re.sub(r"-{3,}", "---", " ".join(text.split()))


class DocumentedTest(test_run.RunCase):
    def setUp(self):
        super().setUp()
        for name, script in STAND_INS.items():
            path = self.program(name, script)
        self.environment = os.environ | {
            "PATH": path,
            # Wide enough for the tables of the pages.
            "COLUMNS": "200",
        }
        self.work = self.directory / "work"
        self.work.mkdir()

    def prepare(self, **more):
        """Write the files that the pages name, and that no command there makes."""
        case = sound.Case()
        files = {
            "perfvm.yaml": case.policy,
            "scenario.yaml": yaml.safe_dump(SCENARIO, sort_keys=False),
            "compute1.json": hosts.as_json(case.host),
            "compute1-nova.conf": "[compute]\ncpu_dedicated_set = 0-39\n",
            "cloud.json": snapshot.dumps(hosts.snapshot()),
        }
        for number, guest in enumerate(case.guests, 1):
            files[f"rgw{number}.json"] = hosts.as_json(guest)
            files[f"vm{number}.json"] = hosts.as_json(guest)
        for name, text in (files | more).items():
            self.write(name, text)

    def write(self, name, text):
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_page(self, commands, **more):
        """Run the commands of a page; return what each printed.

        :param more: files beside those of every page: {name: text}
        """
        printed = []
        for command in commands:
            self.prepare(**more)
            printed.append(self.run_shown(command))
        return printed

    def run_shown(self, command):
        """Run a command; look at its status, its output and what it has written."""
        typed = command.text
        for long, short in SHORTER.items():
            typed = typed.replace(long, short)
        for name in outputs(typed):
            (self.work / name).unlink(missing_ok=True)
        done = subprocess.run(
            ["bash", "-c", typed],
            check=False,
            capture_output=True,
            text=True,
            cwd=self.work,
            env=self.environment,
            timeout=test_run.PATIENCE_S,
        )
        said = f"{command.place}: {typed}\n{done.stderr}{done.stdout}"[:MOST_SHOWN]
        statuses = next(
            (found for words, found in STATUSES.items() if typed.startswith(words)), {0}
        )
        self.assertIn(done.returncode, statuses, said)
        for words in ("Traceback", "usage: "):
            self.assertNotIn(words, done.stderr, said)
        for name in outputs(typed):
            self.assert_written(self.work / name, said)
        self.assertIn(
            spread_out(command.output), spread_out(done.stderr + done.stdout), said
        )
        return done.stdout

    def assert_written(self, path, said):
        text = path.read_text()
        self.assertNotEqual("", text, said)
        if path.suffix == ".json":
            json.loads(text)
        elif path.suffix == ".html":
            self.assertRegex(text, r"(?is)^<!doctype html>.*</html>\s*$")
        elif path.suffix == ".py":
            compile(text, path.name, "exec")
        if "ssh " in said.partition("\n")[0]:
            found = reading.loads(text, path.name)
            self.assertEqual(os.uname().nodename, found.hostname)

    def sound_samples(self, *who):
        """Return what was measured on a host and VMs, by those only, if named.

        ``alone`` is a VM with nobody beside it, which would have all of the network.
        """
        document = json.loads(samples.dumps(sound.Case().samples()))
        found = document["measurements"]
        found += [
            m | {"who": "alone", "at_once": 1}
            for m in found
            if m["who"] == "vm1" and m["tool"] != "iperf3"
        ]
        document["measurements"] = [
            m for m in found if m["who"] in (who or sound.MACHINES)
        ]
        return json.dumps(document)

    def test_collect(self):
        self.run_page(documented.of(self))
        (made,) = self.work.glob("perfvm-host-*.json")
        self.assertEqual("host", reading.read(str(made)).kind)

    def test_host_checks(self):
        self.run_page(documented.of(self))

    def test_guest_checks(self):
        _, user_data = self.run_page(documented.of(self))
        self.assertEqual("", user_data)
        text = (self.work / "user-data").read_text()
        self.assertTrue(text.startswith("#cloud-config"), text)
        self.assertIn("/usr/local/sbin/perfvm-queues", text)

    def test_benchmarks(self):
        self.need(*test_run.TOOLS, "numactl")
        by_hand = {"cpu-1.txt": (test_run.OUTPUTS / "sysbench_cpu.txt").read_text()}
        run, compare, _, again, taken, *_ = self.run_page(
            documented.of(self), **by_hand
        )
        self.assertIn("3 measurements", taken)
        for one in (run, again):
            self.assertIn("0 failures", one)
        # One round tells no interval.
        self.assertIn("UNKNOWN", compare)

    def test_comparisons(self):
        files = {
            "host.json": self.sound_samples("node0", "node1"),
            "vm1.json": self.sound_samples("vm1"),
            "vm2.json": self.sound_samples("vm2"),
            "run.json": self.sound_samples("node0", "node1", "vm1", "vm2", "alone"),
        }
        compare, *_ = self.run_page(documented.of(self), **files)
        self.assertIn("OK", compare)

    def test_disk_consolidation(self):
        self.need("fio")
        vm = test_disk.fio()
        *commands, shown = documented.of(self)
        table = "name,servers,cpus,memory_gb,read_iops\nvm,5,4,8,50\n"
        vms = {"vm1.json": vm, "vm2.json": vm, "services.csv": table}
        self.run_page(commands, **vms)
        json.loads((self.work / "alone.json").read_text())
        reads, writes, latencies = test_disk.FIVE["NAS"]
        alone = test_disk.ALONE["NAS"]
        five = dict(enumerate(zip(reads, writes, latencies, strict=True), start=1))
        measured = {
            f"vm{number}.json": test_disk.measured(*found, found[-1])
            for number, found in five.items()
        }
        measured["alone.json"] = test_disk.measured(*dataclasses.astuple(alone)[:4])
        self.run_page([shown], **measured, **{"services.csv": table})
