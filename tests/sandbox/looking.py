# SPDX-License-Identifier: Apache-2.0
"""Commands that look at a sandbox, and what they should see."""

import json
import os
import pathlib
import subprocess
import sys

from tests.sandbox import base

# In each of two clouds, and twice as many in the one that is for rules.
STATES = int(os.environ.get("PERFVM_AGREEMENT_STATES", "25"))
_ROOT = pathlib.Path(__file__).parents[2]


class LookingMixin:
    """For tests of :class:`tests.sandbox.base.SandboxTest`."""

    def look(self, command, *arguments):
        """Run a command; return the exit status, the rows and what it says."""
        policy = str(self.sandbox.layout.policy)
        result = self.command(
            *("openstack", "perfvm", *command.split(), "-f", "json"),
            *("--policy", policy, *arguments),
            check=False,
        )
        self.assertNotEqual("", result.stdout, result.stderr)
        return result.returncode, json.loads(result.stdout), result.stderr

    def audit(self, *arguments):
        conf = str(self.sandbox.layout.etc / "placement" / "placement.conf")
        return self.look("audit", "--placement-conf", conf, *arguments)

    def assert_agreement(self, states=STATES, *, often=(), logged=()):
        """Compare explain with the schedulers in random states.

        While a code came up too seldom, in up to as many more.

        :param often: codes that explain has to give five times
        :param logged: codes that the filter has to log five times; of less than 100
            states nothing is demanded
        """
        five = STATES // 100 * 5
        wanted = {
            "codes": dict.fromkeys(often, five),
            "logged": dict.fromkeys(logged, five),
        }
        program = (sys.executable, "-W", "ignore", "-m", "tests.sandbox.agreement")
        directory = str(self.sandbox.layout.directory)
        done = subprocess.run(
            [
                *(*program, directory, "--states", str(states)),
                *("--wanted", json.dumps(wanted)),
            ],
            check=False,
            cwd=_ROOT,
            capture_output=True,
            text=True,
        )
        self.assertEqual(0, done.returncode, done.stderr)
        found = json.loads(done.stdout)
        base.tell(f"explain and the scheduler: {found['counts']}")
        base.tell(f"codes of explain: {found['codes']}")
        base.tell(f"codes of the filter: {found['logged']}")
        self.assertEqual([], found["different"])
        self.assertIn(found["counts"]["states"], range(states, 2 * states + 1))
        self.assertEqual([], found["lacking"])
