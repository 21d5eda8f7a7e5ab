# SPDX-License-Identifier: Apache-2.0

import subprocess
import sys

import testtools

# In a process of its own: what is frozen stays so.  As many first requests at once as
# threads; the collector, which takes a while, lets each of them in.
SCRIPT = """
import gc, logging, sys, threading, time, weakref
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
from nova_perfvm.scheduler import garbage

class Ring:
    def __init__(self):
        self.ring = self

def lost():
    return weakref.ref(Ring())

gc.disable()
gc.callbacks.append(lambda phase, info: time.sleep(0.05))
before = lost()
together = threading.Barrier(8)
counts = []

def first_request():
    together.wait()
    counts.append(garbage.freeze())

threads = [threading.Thread(target=first_request) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(counts) == 8 and len(set(counts)) == 1 and counts[0] > 10000, counts
assert before() is None, "garbage was kept"
later = lost()
gc.collect()
assert later() is None, "what comes later is collected"
"""


class FreezeTest(testtools.TestCase):
    def test_several_first_requests_at_once(self):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
        )
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(1, done.stdout.count("not searched for garbage"))
