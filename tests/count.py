# SPDX-License-Identifier: Apache-2.0
"""Count the tests of the runs that stestr stored: ``N passed, N failed``.

    python -m tests.count FIRST_RUN [EXPECTED]

Fails when a test failed, or fewer ran than are expected: stestr itself does not
notice when one of its workers dies.  Failures and skips are shown with their
reason, in a line each: what stestr shows of them ends with pages of logs.
"""

import collections
import re
import sys

import testtools
from stestr.repository import util

GOOD = {"success", "xfail"}
BAD = {"fail", "uxsuccess"}
_LONGEST = 600


class Totals(testtools.StreamResult):
    """What ended how; a test's last word counts.

    :ivar seconds: how long each test took
    """

    def __init__(self):
        super().__init__()
        self.ended = {}
        self.seconds = {}
        self._began = {}
        self.reasons = {}
        self._traces = collections.defaultdict(bytes)
        self._rows = collections.defaultdict(bytes)

    def status(self, test_id=None, test_status=None, **kwargs):
        """Take one event of the stream."""
        name, content = kwargs.get("file_name"), kwargs.get("file_bytes") or b""
        if test_id and (now := kwargs.get("timestamp")):
            began = self._began.setdefault(test_id, now)
            self.seconds[test_id] = (now - began).total_seconds()
        if test_id is None or name == "reason":
            if content:
                self.reasons[test_id] = content.decode()
                sys.stdout.write(f"{test_id}: {content.decode()}\n")
        elif test_status not in {None, "inprogress", "exists"}:
            self.ended[test_id] = test_status
        if (name or "").startswith("traceback"):
            self._traces[test_id] += content
        if (name or "").startswith("row"):
            self._rows[test_id] += content

    @property
    def counts(self):
        """How many passed, failed and were skipped."""
        states = list(self.ended.values())
        return {
            "passed": sum(state in GOOD for state in states),
            "failed": sum(state in BAD for state in states),
            "skipped": sum(state == "skip" for state in states),
        }

    def failures(self):
        """Return a line for each failed test, with what was raised."""
        for test_id, state in self.ended.items():
            if state in BAD:
                trace = self._traces[test_id].decode(errors="replace")
                row = " ".join(self._rows[test_id].decode(errors="replace").split())
                row = f"[{row[:_LONGEST]}] " if row else ""
                yield f"FAILED {test_id}: {row}{raised(trace)}"


def read(run):
    """Return the totals of a run that stestr stored."""
    totals = Totals()
    totals.startTestRun()
    run.get_test().run(totals)
    totals.stopTestRun()
    return totals


def raised(trace):
    """Return where in the tests something was raised, and what, in a line."""
    frames = re.findall(r"^  File \".*/(tests/.*)\", line (\d+)", trace, re.MULTILINE)
    place = "{}:{}: ".format(*frames[-1]) if frames else ""
    _, _, last = trace.rpartition("\n  File ")
    said = [line for line in last.splitlines()[1:] if not line.startswith("    ")]
    return place + " ".join(" ".join(said).split())[:_LONGEST]


def main(first, expected=None):
    """Print the failures of all runs from the first one on, and their totals.

    :param expected: the number of tests; without it only failures are printed
    """
    repository = util.get_repo_open(repo_url=".")
    counts = collections.Counter()
    for number in range(first, repository.latest_id() + 1):
        totals = read(repository.get_test_run(number))
        sys.stdout.writelines(f"{line}\n" for line in totals.failures())
        counts.update(totals.counts)
    if expected is None:
        return 0
    line = f"{counts['passed']} passed, {counts['failed']} failed"
    if counts["skipped"]:
        line += f", {counts['skipped']} skipped"
    missing = expected - sum(counts.values())
    if missing > 0:
        sys.stdout.write(f"{missing} of {expected} tests did not run\n")
    sys.stdout.write(f"{line}\n")
    return int(counts["failed"] > 0 or counts["passed"] == 0 or missing > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
