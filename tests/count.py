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

"""Count the tests of a subunit stream: prints ``passed failed``."""

import sys

import subunit
import testtools


class Totals(testtools.StreamResult):
    """What ended how."""

    def __init__(self) -> None:
        """Start at nothing."""
        super().__init__()
        self.ended: dict[str, str] = {}

    def status(self, test_id=None, test_status=None, **_kwargs) -> None:
        """Take one event; a test's last word counts."""
        if test_id is not None and test_status not in {None, "inprogress", "exists"}:
            self.ended[test_id] = test_status


def main() -> None:
    """Read standard input, print the totals, show skips with their reason."""
    totals = Totals()
    stream = subunit.ByteStreamToStreamResult(sys.stdin.buffer, non_subunit_name="out")
    totals.startTestRun()
    stream.run(totals)
    totals.stopTestRun()
    states = list(totals.ended.values())
    good = sum(state in {"success", "xfail"} for state in states)
    sys.stdout.write(f"{good} {sum(s in {'fail', 'uxsuccess'} for s in states)}\n")


if __name__ == "__main__":
    main()
