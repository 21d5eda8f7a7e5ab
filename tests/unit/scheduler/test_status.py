# SPDX-License-Identifier: Apache-2.0

import subprocess
import sys

import testtools

from nova_perfvm import findings
from nova_perfvm.scheduler import upgrade_check

# A Python in which a package cannot be imported.
WITHOUT = """
import importlib.abc, sys

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if f"{{name}}.".startswith("{blocked}."):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
from nova_perfvm.scheduler import status
sys.exit(status.main(["upgrade", "check"]))
"""


def run_without(blocked):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(blocked=blocked)],
        check=False,
        capture_output=True,
        text=True,
    )


class StatusTest(testtools.TestCase):
    def test_without_nova_it_says_so_in_a_line(self):
        for blocked in ("nova", "oslo_upgradecheck", "packaging"):
            ran = run_without(blocked)
            self.assertEqual((findings.CANNOT_TELL, ""), (ran.returncode, ran.stdout))
            (line,) = ran.stderr.splitlines()
            self.assertIn(f"nothing was checked: No module named '{blocked}", line)
            self.assertIn("after pip install CHECKOUT there", line)

    def test_a_module_of_our_own_that_is_missing_is_a_fault(self):
        ran = run_without("nova_perfvm.policy")
        self.assertEqual(1, ran.returncode)
        self.assertIn("Traceback", ran.stderr)

    def test_no_check_has_that_code(self):
        self.assertNotIn(findings.CANNOT_TELL, list(upgrade_check.Code))
