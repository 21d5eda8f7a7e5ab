# SPDX-License-Identifier: Apache-2.0

import os
import sys
from pathlib import Path

import fixtures
import testtools

from tests.processes import waiting
from tests.processes.errors import SandboxError
from tests.processes.layout import Layout
from tests.processes.process import Processes

SLEEP = "import time; time.sleep(600)"
DEAF = f"import signal; signal.signal(15, signal.SIG_IGN); print('deaf'); {SLEEP}"
PARENT = (
    "import subprocess, sys; "
    f"subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True); "
    "print('parent')"
)


class ProcessesTest(testtools.TestCase):
    """With real processes, which are cheap."""

    def setUp(self):
        super().setUp()
        layout = Layout(Path(self.useFixture(fixtures.TempDir()).path) / "state")
        layout.logs.mkdir(parents=True)
        self.layout = layout
        self.processes = Processes(layout)
        self.addCleanup(self.processes.sweep, 0)

    def start(self, name, code=SLEEP):
        return self.processes.start(name, [sys.executable, "-u", "-c", code])

    def await_output(self, name, word):
        path = self.processes.output(name)
        waiting.until(lambda: word in path.read_text(), f"{name} to say {word}", 30)

    def test_another_command_knows_and_stops_it(self):
        record = self.start("one")

        others = Processes(self.layout)
        self.assertEqual([record], others.all())
        self.assertTrue(record.alive)
        error = self.assertRaises(SandboxError, self.start, "one")
        self.assertIn(f"one runs already, pid {record.pid}", str(error))
        # The kernel shows a program's environment a moment after it has started it.
        waiting.until(lambda: others.leftovers() == [record.pid], "the mark", 30)
        # Its parent is this process, which buries it.
        self.assertEqual([], self.processes.stop(["one"]))
        self.assertFalse(record.alive)
        self.assertEqual(([], []), (others.all(), others.leftovers()))

    def test_killed_is_seen_as_dead_and_can_be_started(self):
        first = self.start("one")
        self.processes.kill("one")

        self.assertFalse(self.processes.find("one").alive)
        self.assertRaises(SandboxError, self.processes.kill, "one")
        second = self.start("one")
        self.assertTrue(second.alive)
        self.assertNotEqual(first, second)

    def test_a_pid_of_somebody_else_is_not_ours(self):
        record = self.processes.adopt("one", os.getpid())
        path = self.layout.processes / "one.json"
        path.write_text(
            path.read_text().replace(str(record.started), str(record.started - 1))
        )

        self.assertFalse(self.processes.find("one").alive)
        self.processes.stop(["one"])

    def test_who_does_not_listen_is_killed(self):
        record = self.start("one", DEAF)
        self.await_output("one", "deaf")
        self.assertEqual(["one"], self.processes.stop(["one"], timeout_s=0.5))
        self.assertFalse(record.alive)

    def test_what_a_process_leaves_behind_is_swept(self):
        self.start("one", PARENT)
        self.await_output("one", "parent")
        self.processes.stop(["one"])

        (pid,) = self.processes.leftovers()
        self.assertEqual([pid], self.processes.sweep(grace_s=0))
        waiting.until(lambda: not self.processes.leftovers(), "the end", 10)

    def test_leftovers_are_told_by_their_arguments(self):
        one, two = (self.start(name, f"{SLEEP}  # {name}.conf") for name in "ab")
        waiting.until(lambda: len(self.processes.leftovers()) == 2, "the mark", 30)
        self.processes.kill_leftovers("b.conf")
        waiting.until(lambda: not two.alive, "the end", 10)
        self.assertTrue(one.alive)

    def test_end_of_output_is_shown_when_it_ends(self):
        record = self.start("one", "raise SystemExit('no such table')")
        waiting.until(lambda: not record.alive, "end", 30)

        check = (waiting.check_alive, self.processes, record)
        said = str(self.assertRaises(SandboxError, *check))
        self.assertRegex(said, "one ended(.|\n)*no such table")

    def test_their_environment_is_not_ours(self):
        self.useFixture(fixtures.EnvironmentVariable("OS_CLOUD", "production"))

        env = self.processes.environment({"A": "b"})

        self.assertNotIn("OS_CLOUD", env)
        self.assertEqual(("b", os.environ["PATH"]), (env["A"], env["PATH"]))
