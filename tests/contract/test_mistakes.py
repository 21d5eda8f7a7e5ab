# SPDX-License-Identifier: Apache-2.0
"""The classic mistakes, each put into a copy of the plugin: all are caught."""

import shutil
from pathlib import Path

import fixtures
import testtools

from tests.contract import facts
from tests.contract.node import ROOT, Node
from tests.contract.test_plugin import DEDICATED, OTHER

OTHERS = ["blazarnova.BlazarFilter"]


class MistakesTest(testtools.TestCase):
    def stacked_with(self, name, right, wrong, **settings):
        """Run stack.sh up to phase post-config with one thing wrong."""
        project = Path(self.useFixture(fixtures.TempDir()).path)
        for part in ("devstack", "etc"):
            shutil.copytree(ROOT / part, project / part)
        path = project / "devstack" / name
        text = path.read_text()
        self.assertEqual(1, text.count(right))
        path.write_text(text.replace(right, wrong))
        node = Node(self.useFixture(fixtures.TempDir()).path, **settings)
        node.project = project
        node.run("stack", until="post-config")
        return node

    def assert_caught(self, words, fact, *arguments):
        error = self.assertRaises(AssertionError, fact, *arguments)
        self.assertIn(words, str(error))

    def test_last_line_that_is_false(self):
        """Harmless wherever errexit is not set, the end of stack.sh elsewhere."""
        node = self.stacked_with(
            "plugin.sh",
            "$_PERFVM_XTRACE\n",
            '$_PERFVM_XTRACE\n[[ "$2" == extra ]] && echo_summary extra\n',
        )
        self.assert_caught("observed (['source'], ", facts.every_phase_ends_well, node)

    def test_clobbered_available_filters(self):
        right = "perfvm_own_item $NOVA_CONF filter_scheduler available_filters lines"
        wrong = (
            "iniset $NOVA_CONF filter_scheduler available_filters"
            " nova_perfvm.scheduler.filters.all_filters #"
        )
        node = self.stacked_with(
            "lib/perfvm",
            f"{right} \\\n        {facts.OUR_FILTERS} \\\n"
            f"        {facts.NOVAS_FILTERS}\n",
            f"{wrong}\n",
            other=OTHER,
        )
        self.assert_caught(
            facts.OUR_FILTERS, facts.available_filters_keep_others, node, OTHERS
        )

    def test_settings_in_the_copy_of_nova_conf(self):
        node = self.stacked_with(
            "lib/perfvm",
            "perfvm_own_options $1/nova.conf $NOVA_CONF DEFAULT compute",
            "perfvm_own_options $1/nova.conf $NOVA_CPU_CONF DEFAULT compute",
            localrc=DEDICATED,
        )
        self.assert_caught(
            "cpu_dedicated_set",
            facts.nova_compute_gets,
            node,
            {("compute", "cpu_dedicated_set"): ["0-39"]},
        )

    def test_missing_async_wait(self):
        node = self.stacked_with(
            "plugin.sh", "        async_wait configure_neutron_nova\n", ""
        )
        self.assert_caught("expected True", facts.nothing_is_lost_to_neutron, node)
        self.assert_caught("nova.conf was changed", facts.nothing_races, node)

    def test_undo_ahead_of_async_wait(self):
        wait = "        async_wait configure_neutron_nova\n"
        undo = (
            "        # What an earlier run left would contradict what this one wants.\n"
            "        perfvm_undo\n"
        )
        node = self.stacked_with("plugin.sh", wait + undo, undo + wait)
        # Only the second time is there something to undo.
        facts.nothing_races(node)
        node.run("stack", until="post-config")
        self.assert_caught("nova.conf was changed", facts.nothing_races, node)

    def test_a_directory_that_stays_changed(self):
        node = self.stacked_with(
            "plugin.sh", "            perfvm_install\n", "            cd /\n"
        )
        self.assert_caught("directory", facts.nothing_leaks, node)

    def test_filter_added_again_and_again(self):
        node = self.stacked_with(
            "settings",
            'NOVA_FILTERS=$(perfvm_add_filters "$NOVA_FILTERS")',
            "NOVA_FILTERS+=,NUMATopologyFilter,PerfVMFilter,PerfVMFilter",
        )
        self.assert_caught(
            "PerfVMFilter", facts.the_filter_is_listed_once_ahead_of_numa, node
        )

    def test_without_a_mistake_nothing_is_caught(self):
        node = self.stacked_with("settings", "# The cloud\n", "#\n", other=OTHER)
        facts.nothing_leaks(node)
        facts.nothing_is_lost_to_neutron(node)
        facts.nothing_races(node)
        facts.the_filter_is_listed_once_ahead_of_numa(node)
        facts.available_filters_keep_others(node, OTHERS)
