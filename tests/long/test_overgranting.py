# SPDX-License-Identifier: Apache-2.0
"""tests/benchmark/overgranting.py, with few rounds."""

import itertools
import re
import subprocess
import sys

import testtools

from tests.sandbox import base

COMMAND = (sys.executable, "-m", "tests.benchmark.overgranting")
ROW = re.compile(
    r"^(?P<level>[A-Z]+ [A-Z]+) +(?P<snapshot>OFF|ON) +(?P<retries>\d+) "
    r"+(?P<over>\d+)/(?P<rounds>\d+) +(?P<most>\d+) +(?P<granted>\d+) "
    r"+(?P<refused>\d+) +(?P<failed>\d+)$",
    re.MULTILINE,
)


class OvergrantingTest(testtools.TestCase):
    def test_placement_grants_too_much_with_retries_and_never_with_one(self):
        """Either cause by itself, and what rids a database of the first."""
        rounds, processes = 6, 6
        counts = ("--rounds", str(rounds), "--processes", str(processes))
        result = subprocess.run(
            [*COMMAND, *counts],
            capture_output=True,
            check=False,
            text=True,
            timeout=5 * base.SECONDS,
        )

        self.assertEqual(0, result.returncode, result.stderr)
        over = {}
        for match in ROW.finditer(result.stdout):
            row = match.groupdict()
            self.assertEqual(str(rounds), row["rounds"])
            claims = sum(int(row[name]) for name in ("granted", "refused", "failed"))
            self.assertEqual(rounds * processes, claims)
            setting = row["level"], row["snapshot"], row["retries"]
            over[setting] = int(row["over"])
        levels = ("REPEATABLE READ", "READ COMMITTED")
        settings = set(itertools.product(levels, ("OFF", "ON"), ("1", "10")))
        self.assertEqual(settings, set(over), result.stdout)
        for (level, snapshot, retries), count in over.items():
            if retries == "1" or (level, snapshot) == ("REPEATABLE READ", "ON"):
                self.assertEqual(0, count, result.stdout)
            else:
                # How many of the rounds are over is chance.
                self.assertGreater(count, 0, result.stdout)
