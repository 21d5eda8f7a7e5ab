# SPDX-License-Identifier: Apache-2.0
"""The commands of the pages about measuring, run as they are shown.

Files that they read are of a host and VMs without a fault, or are made by the commands
before.  ``ssh HOST`` and ``sudo`` are stand-ins that run the rest here.
"""

import json
import os
import re
import subprocess
import sys

import yaml

from nova_perfvm.facts import snapshot
from nova_perfvm.measure import reading, samples
from nova_perfvm.measure.samples import Samples
from tests import shown
from tests.bench import test_run
from tests.unit.measure import hosts, published, test_disk
from tests.unit.measure.certify import sound

ADMIN = "doc/source/admin"
# Here is where a new page, or a new command, is to be added.
PAGES = tuple(
    f"{ADMIN}/{name}.rst"
    for name in (
        *("measure", "collect", "host-checks", "guest-checks", "benchmarks"),
        *("statistics", "certify", "disk-consolidation"),
    )
)
# {page: the test that runs its commands; or why nothing does}.  Of the pages that tests
# of sandboxes run, what is neither openstack perfvm nor nova-perfvm is not run:
# nova-perfvm-status has tests/unit/scheduler/test_upgrade_check.py.
ELSEWHERE = {
    f"{ADMIN}/audit.rst": "tests/sandbox/test_slots.py",
    f"{ADMIN}/explain.rst": "tests/sandbox/test_slots.py",
    f"{ADMIN}/host-modes.rst": "tests/sandbox/test_slots.py",
    f"{ADMIN}/policy.rst": "tests/sandbox/test_slots.py",
    f"{ADMIN}/brownfield.rst": "tests/sandbox/test_slots.py",
    f"{ADMIN}/troubleshoot.rst": "tests/sandbox/test_slots.py",
    f"{ADMIN}/upgrade.rst": "tests/sandbox/test_slots.py",
    "doc/source/user/flavors.rst": "tests/sandbox/test_slots.py",
    f"{ADMIN}/elastic.rst": "tests/sandbox/test_elastic.py",
    f"{ADMIN}/host-playbook.rst": "tests/long/test_host_playbook.py",
    "doc/source/user/tutorial.rst": "tests/sandbox/test_elastic.py",
    f"{ADMIN}/filter.rst": "an aggregate of the operator's; figures of make benchmark",
    f"{ADMIN}/guarantees.rst": "a long run of tests/sandbox",
    f"{ADMIN}/install.rst": "settings, and aggregates of the operator's",
    f"{ADMIN}/overgranting.rst": "make overgranting: hours",
    f"{ADMIN}/weigher.rst": "settings; figures of make benchmark",
    f"{ADMIN}/plans.rst": "tests/unit/osc/test_migrations.py",
    f"{ADMIN}/deploy.rst": "tests/unit/generate/hosts/test_deployers.py",
    f"{ADMIN}/monitoring.rst": "tests/unit/osc/formats/test_monitoring.py",
    f"{ADMIN}/survey.rst": "tests/unit/osc/test_survey runs it on other clouds",
    f"{ADMIN}/map.rst": "tests/unit/osc/test_overview runs it on another cloud",
    f"{ADMIN}/what-if.rst": "tests/unit/osc/test_what_if runs it on another cloud",
    f"{ADMIN}/plan-execution.rst": "tests/functional/test_plan_commands, as code",
    f"{ADMIN}/large-clouds.rst": "settings; figures of make bench",
    f"{ADMIN}/scheduling-cost.rst": "make bench: half an hour",
    f"{ADMIN}/releases.rst": "all suites on all releases: hours",
    "doc/source/contributor/devstack.rst": "tests/contract has a DevStack of doubles",
    "doc/source/contributor/tempest.rst": "make tempest, in .ci/run",
    "doc/source/user/sandbox.rst": "tests/sandbox start and use one themselves",
}
CERTIFY = "nova-perfvm certify"
# {beginning of a command: exit statuses that are right}.  One round tells no interval,
# so that nothing of it passes; a latency that a busy machine made may even fail.
RUN = {
    "nova-perfvm host collect": {0},
    "nova-perfvm guest collect": {0},
    "ssh ": {0},
    "nova-perfvm host check": {0},
    # By the built-in policy, which is of 2x20; this one has a CPU more for itself.
    "nova-perfvm host check results/": {2},
    "nova-perfvm guest check": {0},
    "nova-perfvm bench run": {0},
    "nova-perfvm bench compare": {1, 2},
    "nova-perfvm bench scaling run.json": {0},
    "nova-perfvm bench scaling rps.json": {2},
    "nova-perfvm bench scaling results/": {0},
    "nova-perfvm bench report": {0},
    "nova-perfvm fleet playbook": {0},
    CERTIFY: {0},
    "nova-perfvm plan disk": {0},
    "fio ": {0},
}
# {beginning of a command: why it is not run}.
NOT_RUN = {
    "pip install": "the tests have what it installs",
    "apt-get install": "it changes the machine; .ci/run installs the same",
    "openstack server create": "it needs a cloud; tests/guest runs the cure in a guest",
    "openstack perfvm server check": "tests/functional/test_server_check.py runs it",
    "cd fleet": "tests/bench/test_fleet.py does all that is done there",
    "cp inventory.example.yml": "tests/bench/test_fleet.py has an inventory",
    "ansible-playbook": "tests/bench/test_fleet.py runs it",
    "systemctl restart": "it needs the guest; tests/guest runs the cure in one",
    "python -m tests.benchmark.coverage": "minutes; make benchmark runs it",
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
    "tools": {
        "sysbench_cpu": {"threads": [1], "seconds": 1},
        "sysbench_memory": {"threads": [1], "seconds": 1},
        "cyclictest": {"seconds": 1},
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


def beginning(known, text):
    """Return the longest of some beginnings that a command has; None if it has none."""
    found = [words for words in known if text.startswith(words)]
    return max(found, key=len, default=None)


def outputs(text):
    """Return the files that a command writes."""
    found = re.findall(r"(?:> |--output[ =])(\S+)", text)
    return [] if "--resume" in text else found


def spread_out(text):
    """Return a text as it is whatever the width of the terminal."""
    return re.sub(r"-{3,}", "---", " ".join(text.split()))


class EveryCommandTest(test_run.RunCase):
    def test_every_page_is_known(self):
        for page in shown.pages():
            if shown.commands(page) and page not in PAGES:
                self.assertIn(
                    page,
                    ELSEWHERE,
                    f"who runs the commands of {page}? Add it to PAGES, or to "
                    f"ELSEWHERE with the reason, in {__name__}",
                )
        for page, test in ELSEWHERE.items():
            if test.endswith(".py"):
                self.assertIn(page, (shown.ROOT / test).read_text())

    def test_every_command_is_known(self):
        used = set()
        for command in (c for page in PAGES for c in shown.commands(page)):
            words = beginning((*RUN, *NOT_RUN), command.text)
            self.assertIsNotNone(
                words,
                f"{command.place}: {command.text}\nis run by no test. Add its first "
                f"words to RUN or, with the reason, to NOT_RUN in {__name__}, and the "
                "files that it reads to prepare(); what is no command has to be in a "
                "code-block of its language",
            )
            used.add(words)
        self.assertEqual({*RUN, *NOT_RUN}, used)


class DocumentedTest(test_run.RunCase):
    def setUp(self):
        super().setUp()
        programs = self.directory / "programs"
        programs.mkdir()
        for name, script in STAND_INS.items():
            path = programs / name
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
        self.environment = os.environ | {
            "PATH": f"{programs}:{os.environ['PATH']}",
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
            "compute1.json": sound.collected(case.host),
            "compute1-nova.conf": "[compute]\ncpu_dedicated_set = 0-39\n",
            "cloud.json": snapshot.dumps(hosts.snapshot()),
            "rps.json": samples.dumps(Samples((), (published.rps(),))),
        }
        for number, guest in enumerate(case.guests, 1):
            files[f"rgw{number}.json"] = sound.collected(guest)
            files[f"vm{number}.json"] = sound.collected(guest)
        # What a fleet leaves.
        for name in ("compute1.json", "vm1.json"):
            files[f"results/collected/{name}"] = files[name]
        files["results/runs/compute1.json"] = self.sound_samples(
            "node0", "node1", "vm1", "vm2", "alone"
        )
        for name, text in (files | more).items():
            self.write(name, text)

    def write(self, name, text):
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_page(self, name, **more):
        """Run the commands of a page; return what each printed.

        :param more: files beside those of every page: {name: text}
        """
        printed = []
        for command in shown.commands(f"{ADMIN}/{name}.rst"):
            words = beginning((*RUN, *NOT_RUN), command.text)
            if words in RUN:
                self.prepare(**more)
                if words == CERTIFY:
                    # Of the host and the VMs that were collected, not of this machine.
                    self.write("samples.json", self.sound_samples())
                printed.append(self.run_shown(command, RUN[words]))
        self.assertNotEqual([], printed)
        return printed

    def run_shown(self, command, statuses):
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
        document = json.loads(sound.Case()._samples())
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

    def test_measure(self):
        self.need(*test_run.TOOLS, "numactl")
        *_, certified = self.run_page("measure")
        self.assertIn("CERTIFIED", certified)

    def test_collect(self):
        self.run_page("collect")
        (made,) = self.work.glob("perfvm-host-*.json")
        self.assertEqual("host", reading.read(str(made)).kind)

    def test_host_checks(self):
        self.run_page("host-checks")

    def test_guest_checks(self):
        _, user_data = self.run_page("guest-checks")
        self.assertEqual("", user_data)
        text = (self.work / "user-data").read_text()
        self.assertTrue(text.startswith("#cloud-config"), text)
        self.assertIn("/usr/local/sbin/perfvm-queues", text)

    def test_benchmarks(self):
        self.need(*test_run.TOOLS, "numactl")
        run, compare, _, again, *_ = self.run_page("benchmarks")
        for one in (run, again):
            self.assertIn("0 failure(s)", one)
        self.assertIn("INCONCLUSIVE", compare)

    def test_statistics(self):
        files = {
            "host.json": self.sound_samples("node0", "node1"),
            "vm1.json": self.sound_samples("vm1"),
            "vm2.json": self.sound_samples("vm2"),
            "run.json": self.sound_samples("node0", "node1", "vm1", "vm2", "alone"),
        }
        compare, *_ = self.run_page("statistics", **files)
        self.assertIn("PASS", compare)

    def test_certify(self):
        files = {"samples.json": self.sound_samples()}
        for command in shown.commands(f"{ADMIN}/certify.rst"):
            self.prepare(**files)
            self.assertIn("CERTIFIED", self.run_shown(command, RUN[CERTIFY]))
            # The next one compares with it.
            (self.work / "record.json").rename(self.work / "before.json")

    def test_disk_consolidation(self):
        self.need("fio")
        vm = test_disk.fio()
        self.run_page("disk-consolidation", **{"vm1.json": vm, "vm2.json": vm})
        json.loads((self.work / "alone.json").read_text())
