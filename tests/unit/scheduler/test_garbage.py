# SPDX-License-Identifier: Apache-2.0

import subprocess
import sys

import testtools

# In a process of its own: what is frozen stays so.
SCRIPT = """
import gc, logging, sys, weakref
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
from nova_perfvm.scheduler import garbage

class Ring:
    def __init__(self):
        self.ring = self

class Plain:
    pass

def watched(kind):
    thing = kind()
    return thing, weakref.ref(thing)

lost, of_lost = watched(Ring)
del lost
plain, of_plain = watched(Plain)
count = garbage.freeze()
assert min(count, gc.get_freeze_count()) > 10000, count
assert of_lost() is None, "garbage was kept"
assert garbage.freeze() == count

del plain
assert of_plain() is None, "what nothing refers to is freed"
ring, of_ring = watched(Ring)
del ring
gc.collect()
assert of_ring() is None, "what comes later is collected"
"""

# As many first requests at once as threads; the collector, which takes a while, lets
# each of them in.
THREADS = """
import gc, logging, sys, threading, time
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
from nova_perfvm.scheduler import garbage

gc.disable()
gc.callbacks.append(lambda phase, info: time.sleep(0.05))
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
assert len(counts) == 8 and len(set(counts)) == 1, counts
"""


class FreezeTest(testtools.TestCase):
    def run_script(self, script):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False
        )
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(1, done.stdout.count("not searched for garbage"))

    def test_in_a_process(self):
        self.run_script(SCRIPT)

    def test_several_first_requests_at_once(self):
        self.run_script(THREADS)
