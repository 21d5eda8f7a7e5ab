# SPDX-License-Identifier: Apache-2.0
"""Commands of the documentation, run as they are shown on a real Nova and Placement."""

import os
import pathlib
import shlex
from unittest import mock

import fixtures

from nova_perfvm import constants as const
from nova_perfvm.cloud import nova_database
from nova_perfvm.cloud.api import API
from nova_perfvm.osc import shell
from tests import console, documented
from tests.functional import base, client
from tests.functional.glance import GlanceFixture
from tests.functional.minutes import MinutesPass

# What differs from cloud to cloud.
NAMES = {"/var/lib/node_exporter/": "", "HOST": "hp7"}


class TestDocumented(client.ClientMixin, base.FunctionalTest):
    PLACEMENT = "slots"
    FLAVORS = (base.HP_64, base.HP_200, base.GENERAL_2)

    def setUp(self):
        super().setUp()
        for name in ("hp1", "hp7"):
            self.cloud.start_configured(name, self.policy, "dedicated")
        self.api = API(self.connection("admin", "admin"))
        # The built-in policy, which is that of the cloud.
        self.useFixture(fixtures.EnvironmentVariable("PERFVM_POLICY"))
        self.useFixture(fixtures.EnvironmentVariable("COLUMNS", "200"))
        self.addCleanup(os.chdir, pathlib.Path.cwd())
        os.chdir(pathlib.Path(self.write_policy()).parent)

    def run_shown(self, command, status=0, **names):
        """Run a command; look at its exit status.

        :param names: what stands for names of the page
        """
        typed = command.text
        for name, value in (NAMES | names).items():
            typed = typed.replace(name, value)
        program, *words = shlex.split(typed, comments=True)
        if program == "openstack":
            ended, *printed = self.run_client(*words, stdin=client.Operator())
        else:
            ended, *printed = self.run_offline(program, *words)
        self.assertEqual(status, ended, f"{command.place}: {typed}\n{printed}")

    def run_offline(self, program, *arguments):
        self.assertEqual(shell.NAME, program)
        return console.run(*arguments)

    def test_aggregates_and_traits(self):
        for name in ("hp", "rack7"):
            self.run_client("aggregate", "create", name)
        (root,) = self.api.placement(
            "GET", "/resource_providers?name=hp7", key="resource_providers"
        )
        names = {"EVERY_TRAIT_THAT_IS_TO_STAY ...": "HW_CPU_HYPERTHREADING"}
        for command in documented.of(self):
            self.run_shown(command, UUID=root["uuid"], **names)
        path = f"/resource_providers/{root['uuid']}/traits"
        traits = self.api.placement("GET", path, key="traits")
        self.assertEqual(["HW_CPU_HYPERTHREADING"], traits)
        aggregates = self.api.nova("GET", "/os-aggregates", key="aggregates")
        self.assertEqual(
            {
                "hp": ({"perfvm:class": "high-performance"}, []),
                "rack7": ({"perfvm_weight_multiplier": "0"}, []),
                "perfvm-high-performance": (
                    {f"trait:{const.TRAIT_HIGH_PERFORMANCE}": "required"},
                    ["hp7"],
                ),
            },
            {
                found["name"]: (found["metadata"], found["hosts"])
                for found in aggregates
            },
        )

    def test_pictures(self):
        self.glance = self.useFixture(GlanceFixture())
        self.boot(host="hp1")
        # Nova's database is that of the cloud in this process.
        patch = mock.patch.object(nova_database, "configure")
        self.enterContext(patch)
        for command in documented.of(self):
            self.run_shown(command)
        for name in ("map.html", "survey.html"):
            self.assertIn("hp1", pathlib.Path(name).read_text())
        used = 'perfvm_slots_used{host="hp1",class="high-performance"} 1'
        self.assertIn(used, pathlib.Path("perfvm.prom").read_text())

    def test_plans(self):
        self.boot(host="hp7")
        self.useFixture(MinutesPass(self.cloud))
        # Dedicated hosts have nothing to win by migrations.
        statuses = {"openstack perfvm plan defragment": 2}
        for command in documented.of(self):
            words = command.text.partition(" --")[0]
            self.run_shown(command, statuses.get(words, 0))
