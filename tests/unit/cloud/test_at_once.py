# SPDX-License-Identifier: Apache-2.0

import signal
import subprocess
import sys
import threading
import time

import testtools

from nova_perfvm.cloud.at_once import each
from nova_perfvm.cloud.errors import CloudError

LIMIT_S = 120
INTERRUPTED = """
import signal, threading
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

def items():
    yield from range(6)
    say("all")

def interrupted():
    say("interrupted")
    go.set()

try:
    for item, _ in each(work, items(), 2, interrupted):
        say("outcome", item)
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
            if number == 4:
                raise CloudError("no 4")
            return -number

        found = dict(each(work, range(9), 3))

        exc = self.assertRaises(CloudError, found.pop(4).result)
        self.assertEqual("no 4", str(exc))
        results = {number: future.result() for number, future in found.items()}
        self.assertEqual({n: -n for n in range(9) if n != 4}, results)
        self.assertEqual(3, max(most))

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

    def test_interrupted(self):
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        begun = {process.stdout.readline().strip() for _ in range(3)}
        self.assertEqual({"begin 0", "begin 1", "all"}, begun)
        # Wherever it comes it does no harm, but only a wait has a known end.
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        first, *said, last = process.stdout.read().splitlines()
        self.assertEqual("interrupted", first)
        self.assertEqual(["end 0", "end 1", "outcome 0", "outcome 1"], sorted(said))
        self.assertEqual("KeyboardInterrupt", last)
