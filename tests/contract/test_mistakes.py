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
_WAIT = "        async_wait configure_neutron_nova\n"
_AVAILABLE = "filter_scheduler available_filters"

# File, what is right in it, what is put there, localrc, who notices and what it says.
MISTAKES = {
    # Harmless wherever errexit is not set, the end of stack.sh elsewhere.
    "a last line that is false": (
        *("plugin.sh", "$_PERFVM_XTRACE\n"),
        '$_PERFVM_XTRACE\n[[ "$2" == extra ]] && echo_summary extra\n',
        *("", facts.every_phase_ends_well, "observed (['source'], "),
    ),
    "available_filters that are clobbered": (
        "lib/perfvm",
        (
            f"perfvm_own_item $NOVA_CONF {_AVAILABLE} lines \\\n"
            f"        {facts.OUR_FILTERS} \\\n        {facts.NOVAS_FILTERS}\n"
        ),
        f"iniset $NOVA_CONF {_AVAILABLE} {facts.OUR_FILTERS}\n",
        *("", facts.available_filters_keep_others, facts.OUR_FILTERS),
    ),
    "settings in the copy of nova.conf": (
        "lib/perfvm",
        "perfvm_own_options $1/nova.conf $NOVA_CONF DEFAULT compute",
        "perfvm_own_options $1/nova.conf $NOVA_CPU_CONF DEFAULT compute",
        DEDICATED,
        lambda node: facts.nova_compute_gets(
            node, {("compute", "cpu_dedicated_set"): ["0-39"]}
        ),
        "cpu_dedicated_set",
    ),
    "a missing async_wait": (
        *("plugin.sh", _WAIT, "", "", facts.nothing_races, "nova.conf was changed"),
    ),
    "a directory that stays changed": (
        *("plugin.sh", "            perfvm_install\n", "            cd /\n"),
        *("", facts.nothing_leaks, "directory"),
    ),
    "a filter that is added again and again": (
        *("settings", 'NOVA_FILTERS=$(perfvm_add_filters "$NOVA_FILTERS")'),
        "NOVA_FILTERS+=,NUMATopologyFilter,PerfVMFilter,PerfVMFilter",
        *("", facts.the_filter_is_listed_once_ahead_of_numa, "PerfVMFilter"),
    ),
}


class MistakesTest(testtools.TestCase):
    def stacked_with(self, name, right, wrong, **settings):
        """Run stack.sh up to phase post-config with one thing wrong."""
        project = Path(self.useFixture(fixtures.TempDir()).path)
        for part in ("devstack", "etc"):
            shutil.copytree(ROOT / part, project / part)
        path = project / "devstack" / name
        text = path.read_text()
        self.assertEqual(1, text.count(right), right)
        path.write_text(text.replace(right, wrong))
        node = Node(self.useFixture(fixtures.TempDir()).path, **settings)
        node.project = project
        node.run("stack", until="post-config")
        return node

    def test_each_is_caught(self):
        for mistake, (name, right, wrong, localrc, fact, words) in MISTAKES.items():
            node = self.stacked_with(name, right, wrong, localrc=localrc, other=OTHER)
            error = self.assertRaises(AssertionError, fact, node)
            self.assertIn(words, str(error), mistake)

    def test_without_a_mistake_nothing_is_caught(self):
        node = self.stacked_with("settings", "# The cloud\n", "#\n", other=OTHER)
        facts.nothing_leaks(node)
        facts.nothing_is_lost_to_neutron(node)
        facts.nothing_races(node)
        facts.the_filter_is_listed_once_ahead_of_numa(node)
        facts.available_filters_keep_others(node, OTHERS)
