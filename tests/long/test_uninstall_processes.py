# SPDX-License-Identifier: Apache-2.0
"""From the enabled cloud to plain Nova, with VMs running, where all are processes.

test_uninstall.py takes the same steps in one process; here real
nova-computes forget the children in their own time.
"""

import re
import time

from nova_perfvm.cloud import apply
from tests import shown
from tests.embedded import FILTERS_WITHOUT_PERFVM
from tests.processes import computes, waiting
from tests.sandbox import base
from tests.sandbox.base import GENERAL, HP
from tests.sandbox.documented import DocumentedCommands

PAGE = "doc/source/admin/uninstall.rst"
FAILED = "ResourceProviderAllocationRetrievalFailed"


class UninstallTest(DocumentedCommands, base.SandboxTest):
    HOSTS = "2xelastic:2x20"

    def setUp(self):
        super().setUp()
        self.commands = [
            command
            for command in shown.commands(PAGE)
            if " 1.6 resource" not in command.text
        ]

    def follow(self, count, *asking, **names):
        """Run the next commands of the page; return what they printed."""
        commands, self.commands = self.commands[:count], self.commands[count:]
        printed = self.documented(commands, asking=asking, **names)
        return "".join(printed.values())

    def without_filters(self):
        (path,) = (self.sandbox.layout.etc / "nova").glob("scheduler.conf")
        text = path.read_text()
        filters = f"enabled_filters = {','.join(FILTERS_WITHOUT_PERFVM)}"
        text, changed = re.subn(r"(?m)^enabled_filters *=.*$", filters, text)
        self.assertEqual(1, changed)
        path.write_text(text)
        names = [r.name for r in self.sandbox.status() if "scheduler" in r.name]
        self.sandbox.restart(names)

    def come_and_go(self, host):
        """Let nova-compute claim for a VM and give back; its guests do not reboot."""
        self.delete(self.boot("shared.2c", host=host)["id"])

    def await_status(self, server, status):
        def look():
            shown_ = self.show(server)
            self.assertNotEqual("ERROR", shown_["status"], shown_.get("fault"))
            idle = shown_["OS-EXT-STS:task_state"] is None
            return idle and shown_["status"] == status

        waiting.until(look, f"{server}: {status}", base.SECONDS)

    def assert_no_report_failed(self):
        for path in self.sandbox.layout.logs.glob("nova-compute*"):
            self.assertNotIn(FAILED, path.read_text(), path)

    def test_units(self):
        # The computes have read which children their hosts have.
        names = [r.name for r in self.sandbox.status()]
        self.sandbox.restart([n for n in names if n.startswith(computes.PREFIX)])
        high = self.boot(HP, host="elastic1")["id"]
        general = self.boot(GENERAL, host="elastic2")["id"]

        self.without_filters()
        self.follow(2)
        strip = self.commands[1].text
        self.follow(2, strip)
        began = time.monotonic()
        self.come_and_go("elastic2")
        self.assert_no_report_failed()

        names = {"OLD_FLAVOR": HP, "SERVER": high}
        self.assertIn(high, self.follow(1, **names))
        self.follow(1, **names)
        self.await_status(high, "VERIFY_RESIZE")
        self.follow(1, **names)
        self.await_status(high, "ACTIVE")
        self.delete(general)
        while time.monotonic() - began < apply.FORGOTTEN_S + 10:
            self.come_and_go("elastic1")
            self.come_and_go("elastic2")
            time.sleep(20)
            self.assert_no_report_failed()

        for flavor in self.compute.flavors():
            if flavor.name not in {"pinned.20c", "shared.2c"}:
                self.compute.delete_flavor(flavor)
        delete = self.commands[0].text
        said = self.follow(1, delete)
        self.assertIn("delete provider elastic1_perfvm_a", said)
        self.follow(1)
        self.come_and_go("elastic1")
        self.come_and_go("elastic2")
        time.sleep(70)
        self.assert_no_report_failed()
        self.assertEqual("ACTIVE", self.show(high)["status"])
        found = self.openstack(*("--os-placement-api-version", "1.6", "trait", "list"))
        self.assertNotIn("CUSTOM_PERFVM", str(found))

    def delete(self, server):
        self.compute.delete(f"/servers/{server}")
        waiting.until(
            lambda: self.compute.get(f"/servers/{server}").status_code == 404,
            f"{server} to be deleted",
            base.SECONDS,
        )
        self.servers.remove(server)
