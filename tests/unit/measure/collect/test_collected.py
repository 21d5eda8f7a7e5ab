# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.measure.collect.collected import Collected, CommandOutput, NotReadError

SEEN = Collected(
    kind="guest",
    hostname="vm1",
    taken_at="2026-11-22T10:00:00+00:00",
    files={"/proc/stat": "cpu 1\n", "/proc/cmdline": "quiet\n"},
    later={"/proc/stat": "cpu 2\n"},
    commands={
        "ethtool -l eth0": CommandOutput(0, "Combined: 20\n"),
        "ethtool -i eth1": CommandOutput(71, "", "\nCannot get driver: No such device"),
        "ethtool -i eth2": CommandOutput(1, ""),
    },
    unread={"/proc/1/numa_maps": "permission denied"},
)


class CollectedTest(testtools.TestCase):
    def test_what_was_not_read_says_why(self):
        for read, place, reason in (
            (SEEN.text, "/proc/1/numa_maps", "permission denied"),
            (SEEN.text, "/proc/meminfo", "it was not collected"),
            (SEEN.looks, "/proc/cmdline", "it was read only once"),
            (SEEN.output, "ethtool -l eth9", "it was not collected"),
            (
                SEEN.output,
                "ethtool -i eth1",
                "exit code 71: Cannot get driver: No such device",
            ),
            (SEEN.output, "ethtool -i eth2", "exit code 1: nothing on stderr"),
        ):
            error = self.assertRaises(NotReadError, read, place)
            self.assertEqual((place, reason), (error.place, error.reason))
            self.assertEqual(f"{place}: {reason}", str(error))
