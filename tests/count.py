# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Count the tests of the runs that stestr stored: ``N passed, N failed``.

    python -m tests.count FIRST_RUN EXPECTED

Fails when a test failed, or fewer ran than are expected: stestr itself does not
notice when one of its workers dies.  Skips are shown with their reason.
"""

import sys

import testtools
from stestr.repository import util

GOOD = {"success", "xfail"}
BAD = {"fail", "uxsuccess"}


class Totals(testtools.StreamResult):
    """What ended how; a test's last word counts."""

    def __init__(self):
        super().__init__()
        self.ended = {}

    def status(self, test_id=None, test_status=None, **kwargs):
        """Take one event of the stream."""
        if test_id is None or kwargs.get("file_name") == "reason":
            if kwargs.get("file_bytes"):
                sys.stdout.write(f"{test_id}: {kwargs['file_bytes'].decode()}\n")
        elif test_status not in {None, "inprogress", "exists"}:
            self.ended[test_id] = test_status


def main(first, expected):
    """Print the totals of all runs from the first one on."""
    repository = util.get_repo_open(repo_url=".")
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for number in range(first, repository.latest_id() + 1):
        totals = Totals()
        totals.startTestRun()
        repository.get_test_run(number).get_test().run(totals)
        totals.stopTestRun()
        states = list(totals.ended.values())
        counts["passed"] += sum(state in GOOD for state in states)
        counts["failed"] += sum(state in BAD for state in states)
        counts["skipped"] += sum(state == "skip" for state in states)
    line = f"{counts['passed']} passed, {counts['failed']} failed"
    if counts["skipped"]:
        line += f", {counts['skipped']} skipped"
    missing = expected - sum(counts.values())
    if missing > 0:
        sys.stdout.write(f"{missing} of {expected} tests did not run\n")
    sys.stdout.write(f"{line}\n")
    return int(counts["failed"] > 0 or counts["passed"] == 0 or missing > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
