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

"""Commands that look at a sandbox, and what they should see."""

import json


class LookingMixin:
    """For tests of :class:`tests.sandbox.base.SandboxTest`."""

    def look(self, command, *arguments):
        """Run a command; give the exit status, the rows and what it says."""
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
