# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import shlex
import subprocess
import sys

import fixtures
import testtools
from nova import conf as nova_conf
from oslo_config import fixture as config_fixture
from oslo_upgradecheck import upgradecheck

from nova_perfvm import conf
from nova_perfvm.findings import LEVELS, Level
from nova_perfvm.generate import options
from nova_perfvm.scheduler import upgrade_check
from tests import documented
from tests.unit.generate import filter_lists

FILTERS = (
    "[filter_scheduler]\n"
    "available_filters = nova.scheduler.filters.all_filters\n"
    "available_filters = nova_perfvm.scheduler.filters.all_filters\n"
    "enabled_filters = ComputeFilter,PerfVMFilter,NUMATopologyFilter\n"
)


class UpgradeCheckTest(testtools.TestCase):
    """The real command, with a nova.conf of its own."""

    def check(
        self,
        expected,
        words,
        *sections,
        policy='schema_version: "1.0"\n',
        typed="nova-perfvm-status upgrade check",
    ):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (folder / "perfvm.yaml").write_text(policy)
        # One of the places where Nova looks for it.
        conf_file = folder / ".nova/nova.conf"
        conf_file.parent.mkdir()
        conf_file.write_text(
            f"[perfvm]\npolicy_file = {folder}/perfvm.yaml\n" + "".join(sections)
        )
        program, *arguments = shlex.split(typed)
        result = subprocess.run(
            [pathlib.Path(sys.executable).parent / program, *arguments],
            check=False,
            capture_output=True,
            text=True,
            env=os.environ | {"HOME": str(folder)},
        )
        # The table folds long lines.
        shown = " ".join(
            line.strip("| ") for line in result.stdout.splitlines()
        ).replace("  ", " ")
        self.assertEqual(expected, result.returncode, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, shown)

    def test_good(self):
        (typed,) = {command.text for command in documented.of(self)}
        self.check(
            0,
            [
                *("Users' scheduler hints", "Fallback query", "Success"),
                "PerfVMNUMATopologyFilter in its place gives",
            ],
            FILTERS,
            "[workarounds]\ndisable_fallback_pcpu_query = True\n",
            policy='schema_version: "1.0"\nhost_shape: 2x22\n',
            typed=typed,
        )

    def test_bad_policy(self):
        self.check(2, ["schema_version", "Failure"], FILTERS, policy="placement: x\n")

    def test_what_is_accepted_is_no_warning(self):
        twice = FILTERS.replace(",NUMA", ",PerfVMNUMATopologyFilter,NUMA")
        self.check(
            0,
            ["options.judged_twice: ", "is judged twice", "(accepted in the policy)"],
            twice,
            "[workarounds]\ndisable_fallback_pcpu_query=True\n",
            policy='schema_version: "1.0"\naccept: [options.judged_twice]\n',
        )

    def test_what_is_inherent_is_no_warning(self):
        self.check(
            0,
            ["policy.no_cpu_for_host", "emulator"],
            FILTERS,
            "[workarounds]\ndisable_fallback_pcpu_query=True\n",
        )

    def test_a_mode_that_refuses_nothing(self):
        self.check(
            1,
            ["mode is observe: PerfVMFilter refuses nothing"],
            "mode = observe\n",
            FILTERS,
        )
        self.check(2, ["Mode", "Failure", "off"], "mode = off\n", FILTERS)

    def test_filter_that_is_not_available(self):
        self.check(
            2,
            ["lacks nova_perfvm.scheduler.filters.all_filters"],
            "[filter_scheduler]\nenabled_filters = PerfVMFilter,NUMATopologyFilter\n",
        )

    def test_elastic_hosts_rest_on_two_settings(self):
        self.check(
            2,
            ["disable_fallback_pcpu_query is True", "isolated_aggregate_filtering"],
            FILTERS,
            "[workarounds]\ndisable_fallback_pcpu_query = True\n",
            policy='schema_version: "1.0"\nplacement: units\n',
        )

    def test_elastic_hosts_take_no_pinned_vm_without_the_fallback(self):
        """A failure, which no policy accepts; under other schemes a warning."""
        settings = (
            FILTERS,
            "[workarounds]\ndisable_fallback_pcpu_query = True\n",
            "[scheduler]\nenable_isolated_aggregate_filtering = True\n",
        )
        accepted = 'schema_version: "1.0"\naccept: [options.fallback_query]\n'
        words = ["no pinned VM comes to elastic hosts"]
        self.check(2, words, *settings, policy=f"{accepted}placement: units\n")
        self.check(1, ["also come to hosts without"], FILTERS)
        self.check(0, ["(accepted in the policy)"], FILTERS, policy=accepted)

    def test_elastic_hosts_tell_of_what_nova_means_to_remove(self):
        self.check(
            0,
            ["policy.rests_on_fallback", "fallback query", "means to remove"],
            FILTERS,
            "[scheduler]\nenable_isolated_aggregate_filtering = True\n",
            policy='schema_version: "1.0"\nplacement: units\nhost_shape: 2x22\n',
        )


class FiltersTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.config = self.useFixture(config_fixture.Config(nova_conf.CONF))
        conf.register_opts(nova_conf.CONF)

    def check(self, *enabled):
        self.config.config(
            group="filter_scheduler",
            available_filters=list(options.AVAILABLE_FILTERS.values),
            enabled_filters=enabled,
        )
        return upgrade_check.Checks().check_filters()

    def test_what_is_said_of_the_list_of_filters(self):
        for text, expected, words in filter_lists.LISTS:
            found = self.check(*text.split(","))
            details = found.details or ""
            self.assertIn(words, details)
            self.assertEqual(len(expected), details.count("options."))
            worst = max((LEVELS[code] for code in expected), default=Level.OK)
            names = {Level.WARNING: "WARNING", Level.FAILURE: "FAILURE"}
            self.assertEqual(names.get(worst, "SUCCESS"), found.code.name)

    def test_a_filter_of_nova_that_is_not_known(self):
        right = (options.FILTER, options.NUMA_FILTER)
        self.assertIsNone(self.check(*right).details)
        name = "nova_perfvm.scheduler.numa_filter.is_known"
        self.useFixture(fixtures.MonkeyPatch(name, lambda _method: False))
        found = self.check(*right)
        self.assertEqual(upgrade_check.Code.WARNING, found.code)
        self.assertIn("is not the one", found.details)


class RebuildHintTest(testtools.TestCase):
    """CVE-2026-46448, by the installed release of Nova."""

    RELEASES = (
        ("30.2.1", "31.3.1"),
        ("31.0.0", "31.3.1"),
        ("31.3.0", "31.3.1"),
        ("31.3.1", None),
        ("31.4.0", None),
        ("32.0.0.0rc1", "32.2.1"),
        ("32.0.0", "32.2.1"),
        ("32.2.0", "32.2.1"),
        ("32.2.1.dev3", "32.2.1"),
        ("32.2.1", None),
        ("32.10.0", None),
        ("33.0.0", "33.0.2"),
        ("33.0.1", "33.0.2"),
        ("33.0.2", None),
        ("33.1.0", None),
        ("34.0.0.0rc1", None),
        ("34.0.0", None),
        ("40.0.0", None),
    )

    def test_every_release_and_the_one_that_mends_it(self):
        for installed, expected in self.RELEASES:
            found = upgrade_check.release_that_drops_hints(installed)
            self.assertEqual(expected, found, installed)

    def test_the_check(self):
        for installed, expected in self.RELEASES:
            with fixtures.MonkeyPatch(
                "importlib.metadata.version", {"nova": installed}.__getitem__
            ):
                result = upgrade_check.Checks().check_rebuild_hint()
            if expected is None:
                self.assertEqual(upgradecheck.Code.SUCCESS, result.code, installed)
            else:
                self.assertEqual(upgradecheck.Code.FAILURE, result.code, installed)
                self.assertIn(f"Nova {installed} takes", result.details)
                self.assertIn(f"upgrade Nova to {expected},", result.details)
