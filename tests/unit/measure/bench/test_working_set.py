# SPDX-License-Identifier: Apache-2.0
"""What tools of memory work on, by the caches that targets tell."""

from unittest import mock

import testtools

from nova_perfvm.measure.bench import run, target_state

# lscpu -B -C=LEVEL,ALL-SIZE, on one line.
CACHES = "LEVEL ALL-SIZE 1 65536 1 65536 2 1048576 3 33554432 "


class WorkingSetTest(testtools.TestCase):
    def looks(self, *caches, memory_bytes=0):
        return {
            str(number): mock.Mock(
                last_level_cache_bytes=target_state.last_level(text),
                memory_bytes=memory_bytes,
            )
            for number, text in enumerate(caches)
        }

    def working_set_mb(self, *caches, **memory):
        self.told = []
        return run._working_set_mb(self.looks(*caches, **memory), self.told.append)

    def test_half_of_the_memory_at_most(self):
        self.assertEqual(128, self.working_set_mb(CACHES, memory_bytes=2**28))
        self.assertEqual([], self.told)
        self.assertEqual(127, self.working_set_mb(CACHES, memory_bytes=2**28 - 2))
        (told,) = self.told
        self.assertIn("127 MiB, half of what 0 has", told)

    def test_four_times_the_largest_last_level(self):
        """All targets work on the same, whatever a guest shows."""
        two_sockets = CACHES.replace("33554432", "75497472")
        for caches, mb in (
            ((CACHES,), 128),
            ((CACHES, two_sockets, ""), 288),
            ((two_sockets, CACHES), 288),
            (("LEVEL ALL-SIZE 2 1048577",), 5),
        ):
            self.assertEqual(mb, self.working_set_mb(*caches))

    def test_nobody_tells_a_cache(self):
        error = self.assertRaises(
            run.NothingToRunError, self.working_set_mb, "", "LEVEL ALL-SIZE"
        )
        self.assertIn("set working_set_mb", str(error))
