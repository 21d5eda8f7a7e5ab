# SPDX-License-Identifier: Apache-2.0

import signal
import subprocess
import sys
import threading

import testtools

from nova_perfvm.cloud.at_once import each
from nova_perfvm.cloud.errors import CloudError

LIMIT_S = 120
# What is at work waits until it is told to end; never, without "end".
INTERRUPTED = """
import signal, sys, threading
from nova_perfvm.cloud.at_once import each

# What runs in the background inherits that it is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
go = threading.Event()
lock = threading.Lock()

def say(*words):
    with lock:
        print(*words, flush=True)

def work(number):
    say("begin", number)
    go.wait()
    say("end", number)

def interrupted(begun, left):
    say("interrupted", begun, left)
    if "end" in sys.argv:
        go.set()

try:
    for outcome in each(work, range(6), 2, interrupted):
        say("outcome", outcome.item)
except KeyboardInterrupt:
    say("KeyboardInterrupt")
"""


class EachTest(testtools.TestCase):
    def test_as_many_as_workers_at_a_time(self):
        together = threading.Barrier(3, timeout=LIMIT_S)
        lock, now, most = threading.Lock(), [], []

        def work(number):
            with lock:
                now.append(number)
                most.append(len(now))
            # Nobody gets on unless three have come.
            together.wait()
            with lock:
                now.remove(number)
            return -number

        found = {o.item: o.result() for o in each(work, range(9), 3)}

        self.assertEqual({number: -number for number in range(9)}, found)
        self.assertEqual(3, max(most))

    def test_an_error_is_that_of_its_item(self):
        def work(number):
            if number % 2:
                raise CloudError(f"no {number}")
            return number

        for outcome in each(work, range(4), 2):
            if outcome.item % 2:
                exc = self.assertRaises(CloudError, outcome.result)
                self.assertEqual(f"no {outcome.item}", str(exc))
            else:
                self.assertEqual(outcome.item, outcome.result())

    def test_nothing_to_do(self):
        self.assertEqual([], list(each(str, [], 4)))

    def test_whoever_asks_gives_up(self):
        """What has begun ends, and nothing more is begun."""
        begun, ended = [], []
        go = threading.Event()

        def work(number):
            begun.append(number)
            if number:
                go.wait(LIMIT_S)
            ended.append(number)

        outcomes = each(work, range(6), 2)
        next(outcomes)
        while len(begun) < 3:
            pass
        go.set()
        outcomes.close()
        self.assertEqual(sorted(begun), sorted(ended))
        self.assertLess(len(ended), 6)


class InterruptTest(testtools.TestCase):
    def start(self, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, *arguments],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        begun = {process.stdout.readline() for _ in range(2)}
        self.assertEqual({"begin 0\n", "begin 1\n"}, begun)
        process.send_signal(signal.SIGINT)
        self.assertEqual("interrupted 2 4\n", process.stdout.readline())
        return process

    def test_what_has_begun_goes_on_to_its_end(self):
        said = self.start("end").stdout.read().splitlines()
        self.assertEqual(
            ["KeyboardInterrupt", "end 0", "end 1", "outcome 0", "outcome 1"],
            sorted(said),
        )
        self.assertEqual("KeyboardInterrupt", said[-1])

    def test_twice(self):
        process = self.start()
        process.send_signal(signal.SIGINT)
        self.assertEqual("KeyboardInterrupt\n", process.stdout.read())
        self.assertEqual(0, process.wait(LIMIT_S))
