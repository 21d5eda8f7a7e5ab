# SPDX-License-Identifier: Apache-2.0
"""Short runs of the real tools on this machine, interrupted and gone on with.

What is measured in a second proves that the parts fit together, nothing else.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

import fixtures

from nova_perfvm import cpuset
from nova_perfvm.measure import samples
from tests.directory import DirectoryCase
from tests.unit.measure.bench.test_tools import OUTPUTS

TOOLS = ("sysbench", "fio", "iperf3", "cyclictest")
COMMAND = (
    sys.executable,
    "-c",
    (
        "import sys; sys.argv[0] = 'nova-perfvm'\n"
        "from nova_perfvm.osc.shell import main; sys.exit(main())"
    ),
)
# A shell has what runs in the background ignore it.  Some tests take PATH away.
INTERRUPTIBLE = (shutil.which("env"), "--default-signal=INT")
# A machine that others use, too, may take a while.
PATIENCE_S = 300
# The shortest runs.
SYSBENCH = {"sysbench_cpu": {"threads": [1], "seconds": 1}}
FIO = {"size": "1m", "numjobs": 1, "seconds": 1}
# A temporary directory may be in memory, which is not read beside the page cache.
ON_DISK = "/var/tmp"


def missing(*tools):
    """Return why a test of tools cannot run, nothing if it can."""
    absent = [tool for tool in tools if shutil.which(tool) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


def free_ports(count):
    """Return the first of some ports in a row that nobody listens on."""
    for first in range(35201, 60000, 100):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    one = stack.enter_context(socket.socket())
                    one.bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise AssertionError("no free ports")


class RunCase(DirectoryCase):
    def setUp(self):
        super().setUp()
        self.output = self.directory / "run.json"

    def on_disk(self):
        """Return a directory that ends with the test."""
        fixture = fixtures.TempDir(rootdir=ON_DISK)
        return pathlib.Path(self.useFixture(fixture).path)

    def need(self, *tools):
        """Skip, and say so, where tools are absent."""
        if why := missing(*tools):
            print(f"SKIPPED {self.id()}: {why}", file=sys.stderr)  # noqa: T201
            self.skipTest(why)

    def scenario(self, tools, **changes):
        """Write a scenario of a host and two guests, all of them here."""
        document = {
            "schema_version": "1.0",
            "repeats": 1,
            "warm_up": 0,
            "targets": {
                "host": {"kind": "host"},
                "vm1": {"kind": "guest"},
                "vm2": {"kind": "guest", "prefix": ["nice", "-n", "1"]},
            },
            "groups": {"alone": ["host"], "vms": ["vm1", "vm2"]},
            "tools": tools,
        } | changes
        path = self.directory / "scenario.yaml"
        path.write_text(json.dumps(document, indent=1))
        return str(path)

    def start(self, *arguments, **environment):
        process = subprocess.Popen(
            [*INTERRUPTIBLE, *COMMAND, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def ended(self, process):
        """Wait for a process; return its exit status, and what it has printed."""
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
        self.assertNotIn("Traceback", stderr)
        return process.returncode, stdout, stderr

    def run_it(self, *arguments, **environment):
        return self.ended(self.start(*arguments, **environment))

    def start_bench(self, scenario, *more, **environment):
        output = ("--output", str(self.output))
        return self.start("bench", "run", scenario, *output, *more, **environment)

    def run_bench(self, scenario, *more, **environment):
        return self.ended(self.start_bench(scenario, *more, **environment))

    def document(self):
        return json.loads(self.output.read_text())

    def steps(self):
        with contextlib.suppress(FileNotFoundError):
            return [step["key"] for step in self.document()["run"]["steps"]]
        return []


class AllToolsTest(RunCase):
    """Every tool on all targets, then what the other commands make of it."""

    def test_run_compare_and_report(self):
        self.need(*TOOLS)
        if os.geteuid():
            self.skipTest("cyclictest needs root")
        work = self.on_disk()
        kinds = {"host": "host", "vm1": "guest", "vm2": "guest", "server": "host"}
        served = {
            "server": "server",
            "address": "127.0.0.1",
            "port": free_ports(4),
            "connections": [2],
            "seconds": 1,
        }
        scenario = self.scenario(
            {
                "sysbench_cpu": {"threads": [1, 2], "seconds": 1},
                "memory_bandwidth": {"threads": [1], "seconds": 1},
                "memory_latency": {"threads": [1], "seconds": 1},
                "cyclictest": {"threads": [1], "seconds": 1},
                "iperf3": served | {"omit_s": 0},
                "fio": FIO | {"directory": str(work)},
            },
            targets={name: {"kind": kind} for name, kind in kinds.items()},
        )
        status, stdout, stderr = self.run_bench(scenario)
        self.assertEqual(0, status, stderr)
        self.assertEqual("", self.failures())
        # 12 runs of both groups.
        self.assertIn("24 of 24 steps; 0 failures", stdout)
        self.assertIn("fewer than 5 repeats", stderr)
        self.check_measurements()
        self.check_how_it_was_made()
        # Its files are removed.
        self.assertEqual([], list(work.iterdir()))
        page = self.directory / "report.html"
        compared = ("bench", "compare", str(self.output), "--output", str(page))
        status, stdout, stderr = self.run_it(*compared, "-f", "json")
        self.assertEqual(3, status, stderr)
        self.assertEqual({"vm1", "vm2"}, {row["VM"] for row in json.loads(stdout)})
        self.assertIn("cpu.events_per_second", page.read_text())

    def failures(self):
        return "\n".join(map(str, self.document()["run"]["failures"]))

    def check_measurements(self):
        found = samples.load(str(self.output)).measurements
        by_who = {}
        for m in found:
            by_who.setdefault(m.who, set()).add(m.metric)
            self.assertEqual(1 if m.who == "host" else 2, m.at_once)
            self.assertRegex(m.tool_version, r"^\d+\.\d+")
        self.assertEqual({"host", "vm1", "vm2"}, set(by_who))
        for metrics in by_who.values():
            self.assertLessEqual(
                {
                    "cpu.events_per_second",
                    "cpu.latency_max_ms",
                    "memory.bandwidth_mib_per_second",
                    "memory.random_access_ns",
                    "scheduling.loaded.latency_p99_9_us",
                    "network.bits_per_second",
                    "network.received.bits_per_second",
                    "network.packets_per_second",
                    "network.received.packets_per_second",
                    "network.latency_rtt_max_ms",
                    "disk.mixed.read_iops",
                    "disk.write.write_latency_p99_9_ms",
                },
                metrics,
            )

    def check_how_it_was_made(self):
        run = self.document()["run"]
        (session,) = run["sessions"]
        for who, look in session["targets"].items():
            self.assertEqual(os.uname().release, look["kernel"], who)
            self.assertEqual("", look["not_collected"])
            self.assertIn("/proc/interrupts", look["collected"]["files"])
        # The barrier holds: nobody waits for another one to end.
        known = []
        for step in run["steps"]:
            self.assertLess(step["started_apart_s"], 1)
            # Of the host alone, as the others are guests.
            own = {"host"} if "/alone/" in step["key"] else set()
            self.assertEqual(own, set(step["beside"]))
            # The CPUs that each run might really use.
            self.assertEqual({*step["targets"]}, {*step["affinity"]})
            for cpus in step["affinity"].values():
                self.assertEqual(os.sched_getaffinity(0), cpuset.parse(cpus))
            known += [one for one in step["beside"].values() if one is not None]
        # Of some it is not known if a VM of this machine ended meanwhile.
        self.assertNotEqual([], known)
        for one in known:
            self.assertGreaterEqual(one["seconds"], 1)
            self.assertGreaterEqual(one["cpu_s"], one["most_s"])
            self.assertGreaterEqual(one["others_s"], 0)
            self.assertLessEqual(one["cpus"], os.cpu_count())


class ResumeTest(RunCase):
    def test_interrupted_and_gone_on_with(self):
        self.need("sysbench")
        scenario = self.scenario(SYSBENCH, repeats=3, warm_up=1)
        process = self.start_bench(scenario)
        self.wait_until(lambda: len(self.steps()) >= 3, process)
        process.send_signal(signal.SIGINT)
        status, _, stderr = self.ended(process)
        self.assertEqual(130, status, stderr)
        self.assertIn("go on by the same command with --resume", stderr)
        before = self.steps()
        self.assertIn(len(before), range(3, 8))
        status, _, stderr = self.run_bench(scenario)
        self.assertEqual(1, status)
        self.assertIn("go on with it by --resume", stderr)
        status, stdout, stderr = self.run_bench(scenario, "--resume")
        self.assertEqual(0, status, stderr)
        self.assertIn("8 of 8 steps", stdout)
        after = self.steps()
        # Nothing was measured twice; the warm-up is not among the figures.
        self.assertEqual(before, after[: len(before)])
        self.assertEqual(8, len(set(after)))
        rounds = {m["round"] for m in self.document()["measurements"]}
        self.assertEqual({1, 2, 3}, rounds)
        samples.load(str(self.output))
        # Done is done.
        text = self.output.read_text()
        self.assertEqual(0, self.run_bench(scenario, "--resume")[0])
        self.assertEqual(text, self.output.read_text())
        # Another scenario is another run.
        scenario = self.scenario(SYSBENCH, repeats=4, warm_up=1)
        status, _, stderr = self.run_bench(scenario, "--resume")
        self.assertEqual(1, status)
        self.assertIn("another scenario (repeats differ)", stderr)

    def test_nothing_is_left_running(self):
        self.need("sysbench")
        mark = f"--time={3000 + os.getpid() % 1000}"
        tools = {"sysbench_cpu": {"threads": [1], "seconds": int(mark[7:])}}
        scenario = self.scenario(tools)
        process = self.start_bench(scenario)
        self.wait_until(lambda: running(mark), process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        self.wait_until(lambda: not running(mark))
        # Not after a death without warning, either.
        process = self.start_bench(scenario, "--resume")
        self.wait_until(lambda: running(mark), process)
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        self.wait_until(lambda: not running(mark))

    def wait_until(self, true, process=None):
        deadline = time.monotonic() + PATIENCE_S
        while not true():
            if process is not None:
                self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)


def running(word):
    """Return the sysbench processes that have a word on their command line."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if words[0] == "sysbench" and word in words:
                found.append(path.parent.name)
    return found


class FaultsTest(RunCase):
    """What fails is named, and leaves the rest alone."""

    def test_a_tool_that_fails(self):
        self.need("sysbench", "fio")
        work = self.on_disk()
        one_job = {"directory": str(work), "jobs": {"read": {"rw": "randread"}}}
        tools = SYSBENCH | {"fio": FIO | one_job}
        path = self.program(
            "fio",
            'case "$*" in --version) echo fio-3.33;; *) echo broken >&2; exit 7;; esac',
        )
        scenario = self.scenario(tools)
        status, stdout, stderr = self.run_bench(scenario, PATH=path)
        self.assertEqual(1, status, stderr)
        self.assertIn("exit code 7", stderr)
        self.assertIn("2 of 4 steps", stdout)
        failures = self.document()["run"]["failures"]
        self.assertEqual(
            {("exit code 7", "broken\n")},
            {(one["reason"], one["stderr"]) for one in failures},
        )
        self.assertEqual({"host", "vm1", "vm2"}, {one["who"] for one in failures})
        # Repaired, it is measured.
        status, stdout, stderr = self.run_bench(scenario, "--resume")
        self.assertEqual(0, status, stderr)
        self.assertIn("4 of 4 steps; 0 failures", stdout)

    def test_a_load_that_ends_too_early(self):
        """What was measured then is no figure of a busy machine."""
        path = self.program(
            "sysbench",
            'case "$*" in --version) echo sysbench 1.0.20;;'
            '*) echo "Threads started!";; esac',
        )
        self.program(
            "cyclictest",
            'case "$*" in --help) echo cyclictest V 2.40;; *) sleep 1;'
            f'for f; do :; done; cat {OUTPUTS}/cyclictest.json > "${{f#*=}}";; esac',
        )
        scenario = self.scenario({"cyclictest": {"threads": [1], "seconds": 1}})
        status, stdout, stderr = self.run_bench(scenario, PATH=path)
        self.assertEqual(1, status, stderr)
        self.assertIn("0 of 2 steps; 3 failures", stdout)
        self.assertIn("it was to be busy until the end", stderr)
        self.assertEqual([], self.document()["measurements"])

    def test_what_a_target_has_not_is_named_before_anything_runs(self):
        self.need("sysbench", "taskset")
        path = self.directory / "few"
        path.mkdir()
        for name in ("sh", "nice", "uname", "sed", "head", "cat", "sort", "tr", "date"):
            (path / name).symlink_to(shutil.which(name))
        numactl = self.program("numactl", "echo cpuset forbids it >&2; exit 1")
        for programs, targets, expected in (
            (
                str(path),
                {"host": {"node": 0}, "vm1": {}, "vm2": {}},
                (
                    "host: not installed: sysbench, timeout, sleep, numactl",
                    "vm2: not installed: sysbench, timeout, sleep",
                ),
            ),
            (
                numactl,
                {
                    "host": {"node": 1023},
                    "vm1": {"prefix": ["taskset", "-c", "9999"]},
                    "vm2": {"node": 0},
                },
                (
                    r"host: node 1023: numactl cannot bind to it: exit code 1",
                    r"vm1: exit code 1\s+taskset: failed to set",
                    r"vm2: node 0: numactl cannot bind to it: exit code 1",
                    "cpuset forbids it",
                ),
            ),
        ):
            kinds = {
                name: {"kind": "host" if name == "host" else "guest"} | more
                for name, more in targets.items()
            }
            scenario = self.scenario(SYSBENCH, targets=kinds)
            status, _, stderr = self.run_bench(scenario, PATH=programs)
            self.assertEqual(1, status)
            for words in expected:
                self.assertRegex(stderr, words)
            self.assertFalse(self.output.exists())
