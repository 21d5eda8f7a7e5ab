# SPDX-License-Identifier: Apache-2.0
"""Commands here, and through a program that plays ssh's part."""

import asyncio
import contextlib
import pathlib
import time

import fixtures
import testtools

from nova_perfvm.measure.bench import connection
from nova_perfvm.measure.bench.connection import Clock, TargetError
from nova_perfvm.measure.bench.scenario import Target
from nova_perfvm.measure.bench.tools.tool import ServerCommand
from tests.directory import DirectoryCase

HERE = Target("host", "host")
# Longer than any machine needs for a line of a shell.
PATIENCE_S = 60


class LineTest(testtools.TestCase):
    def test_here(self):
        self.assertEqual(
            ["fio", "--version"], connection.line(HERE, ["fio", "--version"])
        )

    def test_bound_to_a_node(self):
        target = Target("node1", "host", prefix=("nice",), node=1)
        bound = ["nice", "numactl", "--cpunodebind=1", "--membind=1", "true"]
        self.assertEqual(bound, connection.line(target, ["true"]))
        self.assertEqual(
            ["nice", "true"], connection.line(target, ["true"], bound=False)
        )

    def test_through_ssh_a_shell_takes_it_apart_again(self):
        target = Target(
            *("vm1", "guest", "root@192.0.2.1"),
            ssh_options=("-p", "2222"),
            prefix=("sudo", "-n"),
        )
        *ssh, words = connection.line(target, ["sh", "-c", "echo $1", "sh", "it's"])
        self.assertEqual(("ssh", "-o", "BatchMode=yes"), tuple(ssh[:3]))
        # Whatever the destination is, it is no option.
        self.assertEqual(["-p", "2222", "--", "root@192.0.2.1"], ssh[-4:])
        self.assertEqual("""sudo -n sh -c 'echo $1' sh 'it'"'"'s'""", words)


class TogetherTest(testtools.TestCase):
    def test_all_processes_end_before_the_loop_closes(self):
        """Ctrl-C, when the process of one target ends at once, and another's later."""
        self.patch(connection, "_END_S", 0.3)
        commands = (["cat"], ["sh", "-c", "trap '' HUP TERM; sleep 300"])

        async def waits(command):
            async with connection.waiting(HERE, command, 300) as process:
                await process.ready()
                process.send(b"0\n")
                begun.append(process)
                if len(begun) == len(commands):
                    all_begun.set()
                await asyncio.sleep(300)

        async def main():
            doing = connection.together(map(waits, commands))
            task = asyncio.ensure_future(doing)
            await all_begun.wait()
            task.cancel()
            await task

        begun, all_begun = [], asyncio.Event()
        self.assertRaises(asyncio.CancelledError, asyncio.run, main())
        self.assertEqual([True, True], [process.ended for process in begun])

    def test_the_first_error(self):
        async def fails(text):
            raise TargetError(text)

        async def main():
            return await connection.together(map(fails, ("one", "two")))

        error = self.assertRaises(TargetError, asyncio.run, main())
        self.assertEqual("one", str(error))


class RunTest(testtools.TestCase):
    def run_it(self, command, timeout_s=PATIENCE_S, stdin=b""):
        return asyncio.run(connection.run(HERE, command, timeout_s, stdin))

    def test_what_it_prints(self):
        self.assertEqual("two words\n", self.run_it(["echo", "two words"]))
        self.assertEqual("text", self.run_it(["cat"], stdin=b"text"))

    def test_an_output_that_does_not_end(self):
        self.patch(connection, "_END_S", 0.1)
        for command in ("cat /dev/zero", "cat /dev/zero >&2"):
            words = ["sh", "-c", command]
            error = self.assertRaises(TargetError, self.run_it, words)
            self.assertEqual("more than 1 MiB of output", error.reason)
        more = ["head", "-c", str(3 * 2**20), "/dev/zero"]
        run = connection.run(HERE, more, PATIENCE_S, most_bytes=4 * 2**20)
        self.assertEqual(3 * 2**20, len(asyncio.run(run)))

    def test_lines_that_do_not_end(self):
        self.patch(connection, "_END_S", 0.1)

        async def ready(command):
            async with connection.waiting(
                Target("vm1", "guest", prefix=("sh", "-c", command)), ["true"], 1
            ) as one:
                await one.ready()

        for command, reason in (
            ("cat /dev/zero", "a line of more than 65536 bytes"),
            ("yes $(printf %09999d 0)", "too many lines before what was expected"),
        ):
            error = self.assertRaises(TargetError, asyncio.run, ready(command))
            self.assertEqual(reason, error.reason)

    def test_failures(self):
        for command, reason, stderr in (
            (["sh", "-c", "echo broken >&2; exit 7"], "exit code 7", "broken\n"),
            (["sh", "-c", "kill -TERM $$"], "killed by signal 15", ""),
            (["/nonexistent"], "/nonexistent: No such file or directory", ""),
        ):
            error = self.assertRaises(TargetError, self.run_it, command)
            self.assertEqual((reason, stderr), (error.reason, error.stderr))
            self.assertEqual(f"{reason}\n{stderr}".strip(), str(error))
        error = self.assertRaises(TargetError, self.run_it, ["sleep", "2"], 0.1)
        self.assertEqual("no end after 0.1 s", error.reason)


class ClockTest(DirectoryCase):
    def ssh(self, script):
        """Put a program of that name in front of ssh."""
        path = self.program("ssh", script)
        self.useFixture(fixtures.EnvironmentVariable("PATH", path))
        return Target("vm1", "guest", "root@192.0.2.1")

    def test_here_it_is_the_same_one(self):
        self.assertEqual(Clock(0.0, 0.0), asyncio.run(connection.clock(HERE)))

    def test_one_that_is_an_hour_ahead(self):
        target = self.ssh(
            "echo Welcome; echo perfvm-ready; while read -r _; do "
            "echo $(($(date +%s%N) + 3600000000000)); done"
        )
        found = asyncio.run(connection.clock(target))
        self.assertGreater(found.uncertainty_s, 0)
        self.assertLess(abs(found.offset_s - 3600), 2 * found.uncertainty_s)

    def test_one_that_tells_no_time(self):
        for script, reason in (
            (
                "echo perfvm-ready; while read -r _; do echo %N; done",
                "date +%s%N: expected a number, found '%N'",
            ),
            ("echo refused >&2; exit 255", "ended too early: exit code 255"),
        ):
            clock = connection.clock(self.ssh(script))
            error = self.assertRaises(TargetError, asyncio.run, clock)
            self.assertEqual(reason, error.reason)
        self.assertEqual("refused\n", error.stderr)


class WaitingTest(DirectoryCase):
    async def started(self, command, ahead_s=0.0, limit_s=PATIENCE_S):
        """Return the time that was agreed upon, and what the command left."""
        async with connection.waiting(HERE, command, limit_s) as one:
            await one.ready()
            at_s = time.time() + ahead_s
            return at_s, await one.start(at_s)

    def run_it(self, *arguments, **keywords):
        return asyncio.run(self.started(*arguments, **keywords))

    def test_words_and_numbers_of_no_language(self):
        self.useFixture(fixtures.EnvironmentVariable("LC_ALL", "de_DE.UTF-8"))
        _, found = self.run_it(["printenv", "LC_ALL"])
        self.assertEqual("C\n", found.stdout)

    def test_it_starts_when_it_is_time(self):
        at_s, found = self.run_it(["sh", "-c", "date +%s%N; echo x >&2"], ahead_s=0.3)
        self.assertGreaterEqual(found.started_s, at_s)
        # It was told before the command ran, and not after.
        self.assertLessEqual(found.started_s, int(found.stdout) / 1e9)

    def test_failures(self):
        for command, limit_s, reason, stderr in (
            (["sh", "-c", "echo bad >&2; exit 3"], PATIENCE_S, "exit code 3", "bad\n"),
            # Some tools say on standard output what is wrong.
            (["sh", "-c", "echo bad; exit 3"], PATIENCE_S, "exit code 3", "bad\n"),
            (
                *(["sleep", "1000"], 1),
                *("stopped after 1 s: raise grace_s, or look why", ""),
            ),
        ):
            error = self.assertRaises(
                TargetError, self.run_it, command, limit_s=limit_s
            )
            self.assertEqual((reason, stderr), (error.reason, error.stderr))

    def test_one_that_cannot_wait(self):
        target = Target("vm1", "guest", prefix=("false",))

        async def ready():
            async with connection.waiting(target, ["true"], 1) as one:
                await one.ready()

        error = self.assertRaises(TargetError, asyncio.run, ready())
        self.assertEqual("ended too early: exit code 1", error.reason)

    def test_who_is_not_started_never_runs(self):
        path = self.directory / "ran"

        async def left():
            async with connection.waiting(HERE, ["touch", str(path)], 1) as one:
                await one.ready()

        asyncio.run(left())
        self.assertFalse(path.exists())


class ServingTest(DirectoryCase):
    SCRIPT = 'echo $$ > "$1"; echo listening; echo listening; exec sleep 1000'

    def test_it_serves_until_it_is_left(self):
        path = self.directory / "pid"

        async def serve():
            command = ["sh", "-c", self.SCRIPT, "sh", str(path)]
            # Its limit is no way out.
            limit_s = 10 * PATIENCE_S
            server = ServerCommand("here", command, "listening", 2)
            async with connection.serving(HERE, server, limit_s):
                return self.runs(path)

        self.assertTrue(asyncio.run(serve()))
        deadline = time.monotonic() + PATIENCE_S
        while self.runs(path):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def runs(self, path):
        """Return whether the process of a file is there, and no dead one."""
        with contextlib.suppress(OSError):
            text = pathlib.Path(f"/proc/{path.read_text().strip()}/stat").read_text()
            return text.rpartition(")")[2].split()[0] != "Z"
        return False

    def test_what_it_reports_does_not_hold_it_up(self):
        path = self.directory / "done"

        async def serve():
            script = 'echo listening; head -c 4000000 /dev/zero; touch "$1"; sleep 1000'
            command = ["sh", "-c", script, "sh", str(path)]
            server = ServerCommand("here", command, "listening", 1)
            async with connection.serving(HERE, server, PATIENCE_S):
                async with asyncio.timeout(PATIENCE_S):
                    while not path.exists():  # noqa: ASYNC110 - another process
                        await asyncio.sleep(0.02)

        asyncio.run(serve())

    def test_what_it_used(self):
        """Of a run that ends by itself, and of a server that is ended."""
        count = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; echo counted"
        bound = Target("here", "host", prefix=("taskset", "-c", "1"))

        async def run():
            command = ["sh", "-c", count]
            async with connection.waiting(bound, command, PATIENCE_S) as waiting:
                await waiting.ready()
                return await waiting.start(0)

        found = asyncio.run(run())
        self.assertEqual(("counted\n", "1"), (found.stdout, found.used.cpus))
        self.assertGreater(found.used.cpu_s, 0.05)

        async def serve(then, seconds):
            command = ["sh", "-c", f"{count}; {then}"]
            server = ServerCommand("here", command, "counted", 1)
            async with connection.serving(bound, server, PATIENCE_S) as serving:
                await asyncio.sleep(seconds)
            return serving.used

        # The second one has ended by itself, as a server for one client does.
        for then, seconds in (("exec sleep 1000", 0), ("exit", 1)):
            used = asyncio.run(serve(then, seconds))
            self.assertEqual("1", used.cpus)
            self.assertGreater(used.cpu_s, 0.05)

    def test_one_that_is_never_ready(self):
        async def serve():
            command = ["sh", "-c", "echo in use >&2; exit 1"]
            server = ServerCommand("here", command, "listening", 1)
            async with connection.serving(HERE, server, PATIENCE_S):
                self.fail("it is not ready")

        error = self.assertRaises(TargetError, asyncio.run, serve())
        self.assertEqual("ended too early: exit code 1", error.reason)
        self.assertEqual("in use\n", error.stderr)
