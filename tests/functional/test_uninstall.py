# SPDX-License-Identifier: Apache-2.0
"""From the enabled cloud to plain Nova, as its page says, with VMs running."""

import dataclasses
import shlex

from nova_perfvm import constants as const
from nova_perfvm.cloud import answers
from nova_perfvm.cloud.api import API
from nova_perfvm.sandbox.embedded import DEFAULT_FILTERS, FILTERS_WITHOUT_PERFVM
from tests import documented
from tests.functional import base, client


class UninstallCase(client.ClientMixin, base.FunctionalTest):
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


class TestUninstall(UninstallCase):
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
