# SPDX-License-Identifier: Apache-2.0
"""From the enabled cloud to plain Nova, as its page says, with VMs running."""

import dataclasses
import functools
import shlex

from nova_perfvm import constants as const
from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.cloud import answers, converge
from nova_perfvm.cloud.api import API
from tests import documented
from tests.cloud import DEFAULT_FILTERS
from tests.cloud.servers import until
from tests.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base, client
from tests.functional.glance import GlanceFixture
from tests.functional.minutes import TreesAreReadAgain


class TestUninstall(client.ClientMixin, base.FunctionalTest):
    CLOUD = None

    def start(self, placement, **options):
        self.policy = dataclasses.replace(self.policy, placement=placement)
        self.start_cloud(enabled_filters=DEFAULT_FILTERS, **options)
        self.api = API(self.connection("admin", "admin,member,reader"))

    def run_shown(self, words, **names):
        """Run the next command of the page, which has to have these words."""
        command = self.shown.pop(0)
        typed = command.text
        self.assertIn(words, typed)
        for name, value in names.items():
            typed = typed.replace(name, value)
        program, *arguments = shlex.split(typed)
        self.assertEqual("openstack", program)
        status, stdout, stderr = self.run_client(*arguments, stdin=client.Operator())
        self.assertEqual(0, status, f"{command.place}: {typed}\n{stdout}{stderr}")
        return stdout

    def status(self, server):
        return self.servers.show(server).status

    def assert_plain(self):
        """Look that nothing in Placement has a name of the project."""
        for kind in ("traits", "resource_classes"):
            found = str(self.api.placement("GET", f"/{kind}"))
            self.assertNotIn("CUSTOM_PERFVM", found)
        providers = self.api.placement("GET", "/resource_providers")
        self.assertNotIn("_perfvm_", str(providers))

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
        high, general = self.boot(host="h1"), self.boot(base.GENERAL_2, host="h2")

        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        for _ in range(2):
            self.run_shown("flavor create")
        flavors = {f["name"]: f["id"] for f in self.cloud.api.get_flavors()}
        for name in ("pinned.20c", "shared.2c"):
            self.boot_refused(flavors[name])

        self.assertIn("would take the units", self.run_shown("--dry-run"))
        said = self.run_shown("rollback --strip-units")
        self.assertIn("run this command with --delete-children", said)
        for server in (high, general):
            self.servers.act(server, {"reboot": {"type": "HARD"}}, "ACTIVE")
        self.boot(flavors["shared.2c"], host="h2")

        self.assertIn(high.id, self.run_shown("server list", OLD_FLAVOR=base.HP_64))
        names = {"SERVER": high.id}
        self.run_shown("server resize --flavor", **names)
        until(lambda: self.status(high) == "VERIFY_RESIZE", "the resize")
        self.run_shown("resize confirm", **names)
        until(lambda: self.status(high) == "ACTIVE", "the confirmation")
        self.servers.confirm(self.servers.resize(general, flavors["shared.2c"]))
        for server in (high, general):
            self.servers.confirm(self.servers.cold_migrate(server))

        for flavor in (base.HP_64, base.GENERAL_2):
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
        failed = "ResourceProviderAllocationRetrievalFailed"
        self.assertNotIn(failed, self.cloud.nova_log())
        for server in (high, general):
            self.assertEqual("ACTIVE", self.status(server))
            self.servers.live_migrate(server)

    def test_slots(self):
        self.shown = documented.of(self)
        self.start("slots")
        for host, mode in (
            ("d1", "dedicated"),
            ("d2", "dedicated"),
            ("s1", "shared"),
            ("s2", "shared"),
        ):
            self.cloud.start_configured(host, self.policy, mode)
        status, _, said = self.run_client("perfvm", "flavor", "sync", "--yes")
        self.assertEqual(0, status, said)
        high, general = self.boot(host="d1"), self.boot(base.GENERAL_2)

        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        specs = {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "1"}
        self.cloud.create_flavor("pinned.20c", 20, 65536, 40, specs)
        self.cloud.create_flavor("shared.2c", 2, 4096, 40)
        high = self.servers.confirm(self.servers.resize(high, "pinned.20c"))
        general = self.servers.resize(general, "shared.2c")
        general = self.servers.confirm(general)
        self.assertTrue(self.cloud.guest(high).pinned)

        for host in ("d1", "d2"):
            self.cloud.restart_host(host, provider_yaml=None)
            self.assertNotIn(const.RC_SLOT, self.cloud.capacity(host))
            path = f"/resource_providers?name={host}"
            (root,) = self.api.placement("GET", path, key="resource_providers")
            if host == "d1":
                found = self.run_shown("trait list", UUID=root["uuid"])
                self.assertIn(const.TRAIT_HIGH_PERFORMANCE, found)
                kept = self.cloud.traits(host) - {const.TRAIT_HIGH_PERFORMANCE}
                stay = {"EVERY_TRAIT_THAT_IS_TO_STAY ...": " --trait ".join(kept)}
                self.run_shown("trait set", UUID=root["uuid"], **stay)
                continue
            path = f"/resource_providers/{root['uuid']}/traits"
            body = self.api.placement("GET", path)
            body["traits"].remove(const.TRAIT_HIGH_PERFORMANCE)
            self.api.placement("PUT", path, body)
        for flavor in (base.HP_64, base.GENERAL_2):
            self.cloud.api.delete_flavor(flavor)
        status, _, said = self.run_client("perfvm", "rollback", "--yes")
        self.assertEqual(0, status, said)
        self.assertEqual([], [a.name for a in answers.aggregates(self.api)])
        self.api.placement("DELETE", f"/traits/{const.TRAIT_HIGH_PERFORMANCE}")
        self.run_shown("resource class delete")
        self.assertEqual([], self.shown)

        self.assert_plain()
        self.cloud.run_periodics()
        self.assert_plain()
        for server in (high, general):
            self.assertEqual("ACTIVE", self.status(server))
        self.boot("pinned.20c")
        self.servers.live_migrate(high)
