# SPDX-License-Identifier: Apache-2.0
"""From the enabled cloud of elastic hosts to plain Nova, with VMs running."""

import functools
import re
import time

from nova_perfvm import constants as const
from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.cloud import answers, apply, converge
from nova_perfvm.sandbox.embedded import FILTERS_WITHOUT_PERFVM
from nova_perfvm.sandbox.embedded.servers import until
from nova_perfvm.sandbox.processes import computes, waiting
from tests import documented, shown
from tests.functional import base as cloud
from tests.functional.glance import GlanceFixture
from tests.functional.minutes import TreesAreReadAgain
from tests.functional.test_uninstall import UninstallCase
from tests.sandbox import base
from tests.sandbox.base import GENERAL, HP
from tests.sandbox.documented import DocumentedCommands

PAGE = "doc/source/admin/uninstall.rst"
FAILED = "ResourceProviderAllocationRetrievalFailed"


class TestOneProcess(UninstallCase):
    def test_units(self):
        self.shown = documented.of(self)
        # The client asks for the images of the servers that it lists.
        self.glance = self.useFixture(GlanceFixture())
        self.start(
            "units",
            disable_fallback_pcpu_query=False,
            options={("scheduler", "enable_isolated_aggregate_filtering"): True},
        )
        for host in ("h1", "h2"):
            self.cloud.start_host(host)
            planner = functools.partial(plan_enroll, self.policy)
            converge.change_host(self.api, host, planner)
            # As after five minutes: it has read which children its host has.
            self.cloud.restart_host(host)
        self.cloud.label_hosts("high-performance", "h1")
        high, general = self.boot(host="h1"), self.boot(cloud.GENERAL_2, host="h2")

        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        for _ in range(2):
            self.run_shown("flavor create")
        flavors = {f["name"]: f["id"] for f in self.cloud.api.get_flavors()}
        for name in ("pinned.20c", "shared.2c"):
            self.boot_refused(flavors[name])

        self.assertIn("would take the units", self.run_shown("--dry-run"))
        said = self.run_shown("rollback --strip-units")
        self.assertIn("run this then with --delete-children", said)
        for server in (high, general):
            self.servers.act(server, {"reboot": {"type": "HARD"}}, "ACTIVE")
        self.boot(flavors["shared.2c"], host="h2")

        self.assertIn(high.id, self.run_shown("server list", OLD_FLAVOR=cloud.HP_64))
        names = {"SERVER": high.id}
        self.run_shown("server resize --flavor", **names)
        until(lambda: self.status(high) == "VERIFY_RESIZE", "the resize")
        self.run_shown("resize confirm", **names)
        until(lambda: self.status(high) == "ACTIVE", "the confirmation")
        self.servers.confirm(self.servers.resize(general, flavors["shared.2c"]))
        for server in (high, general):
            self.servers.confirm(self.servers.cold_migrate(server))

        for flavor in (cloud.HP_64, cloud.GENERAL_2):
            self.cloud.api.delete_flavor(flavor)
        self.useFixture(TreesAreReadAgain())
        self.run_shown("rollback --delete-children")
        self.assertEqual({const.TRAIT_HIGH_PERFORMANCE}, answers.names(self.api))
        self.run_shown("trait delete")
        (label,) = answers.aggregates(self.api)
        self.run_shown("aggregate unset", AGGREGATE=label.name)
        (label,) = answers.aggregates(self.api)
        self.assertNotIn("perfvm:class", label.metadata)
        self.assertEqual([], self.shown)

        self.assert_plain()
        self.cloud.run_periodics()
        self.assertNotIn(FAILED, self.cloud.nova_log())
        for server in (high, general):
            self.assertEqual("ACTIVE", self.status(server))
            self.servers.live_migrate(server)


class UninstallTest(DocumentedCommands, base.SandboxTest):
    """Real nova-computes forget the children in their own time."""

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
