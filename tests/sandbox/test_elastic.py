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

"""Elastic hosts, which serve one class at a time."""

from tests.sandbox import base, documented
from tests.sandbox.base import GENERAL, HP


class ElasticTest(documented.DocumentedCommands, base.SandboxTest):
    HOSTS = "1xelastic:2x20,1xdedicated:2x20"

    def test_one_class_and_then_the_other(self):
        nodes = set()
        for _ in range(2):
            server = self.boot(HP, host="elastic1")
            nodes.add(self.assert_high_performance(server)[0])
        self.assertEqual({0, 1}, nodes)
        self.boot_refused(HP, host="elastic1")
        self.boot_refused(GENERAL)

        self.delete_all()

        server = self.boot(GENERAL)
        self.assertEqual("elastic1", base.host_of(server))
        self.boot_refused(HP, host="elastic1")
        self.assertEqual("elastic1", base.host_of(self.boot(GENERAL)))
        self.assertEqual("dedicated1", base.host_of(self.boot(HP)))

    def test_hosts_are_enrolled_as_the_command_does_it(self):
        policy = str(self.sandbox.layout.policy)
        for host in ("elastic1", "dedicated1"):
            result = self.command(
                *("openstack", "perfvm", "host", "enroll", host),
                *("--policy", policy, "--yes"),
            )
            self.assertEqual("nothing to do\n", result.stdout)

    def test_commands_of_the_documentation(self):
        readme = documented.block_with("README.rst", "openstack perfvm preflight HOST")
        page = documented.own_commands("doc/source/admin/elastic.rst")
        enroll = "openstack perfvm host enroll HOST --policy perfvm.yaml"
        self.assertIn(enroll, page)

        # Without nova.conf and placement.conf some of it stays unknown.
        self.documented(readme, {"preflight": 1}, HOST="elastic1")
        self.command("openstack", "perfvm", "host", "unenroll", "elastic1", "--yes")
        self.boot_refused(HP, host="elastic1")
        printed = self.documented(page, asking=[enroll], HOST="elastic1")

        self.assertIn("Proceed? [y/N]", printed[enroll])
        self.boot(HP, host="elastic1")

    def test_preflight_finds_nothing(self):
        etc = self.sandbox.layout.etc
        self.command(
            *("openstack", "perfvm", "preflight"),
            *("--policy", str(self.sandbox.layout.policy)),
            *("--nova-conf", str(etc / "nova" / "scheduler.conf")),
            *("--placement-conf", str(etc / "placement" / "placement.conf")),
        )
