# SPDX-License-Identifier: Apache-2.0

import dataclasses
import os
import pathlib
import shlex
import subprocess
import sys

import fixtures
import testtools
from oslo_upgradecheck import upgradecheck

from nova_perfvm.findings import LEVELS, Level
from nova_perfvm.generate import options
from nova_perfvm.known_bugs import known_release
from nova_perfvm.placement.settings import FALLBACK_QUERY, NUMA_PACKING
from nova_perfvm.policy import loader
from nova_perfvm.scheduler import numa_filter, upgrade_check
from tests import documented
from tests.unit.rules import filter_lists
from tests.unit.scheduler.case import ConfigCase
from tests.unit.scheduler.test_nova_fixes import WITH_FIXES, WITHOUT, Source

QUIET = "host_shape: 2x22\n"
UNITS = f"{QUIET}placement: units\n"
CELLS = f"{QUIET}placement: cells\n"
RIGHT = {
    "perfvm": {"mode": "enforce"},
    "filter_scheduler": {
        "available_filters": list(options.AVAILABLE_FILTERS.values),
        "enabled_filters": ["ComputeFilter", "PerfVMFilter", "NUMATopologyFilter"],
    },
    "workarounds": {"disable_fallback_pcpu_query": True},
}
NOVAS = "nova.scheduler.filters.all_filters"
COMPUTE = "nova.scheduler.filters.compute_filter.ComputeFilter"
OURS = "nova_perfvm.scheduler.filters"
NUMA = "nova_perfvm.scheduler.numa_filter.PerfVMNUMATopologyFilter"
FALLBACK = {"workarounds": {"disable_fallback_pcpu_query": False}}
ISOLATED = {"scheduler": {"enable_isolated_aggregate_filtering": True}}


def enabled(filters):
    return {"filter_scheduler": {"enabled_filters": filters.split(",")}}


class ProgramTest(testtools.TestCase):
    def test_it_reads_nova_conf(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (folder / "perfvm.yaml").write_text('schema_version: "1.0"\nplacement: x\n')
        # One of the places where Nova looks for it.
        (folder / ".nova").mkdir()
        lines = f"[perfvm]\npolicy_file = {folder}/perfvm.yaml\nmode = off\n"
        (folder / ".nova/nova.conf").write_text(lines)
        # A page may name the virtual environment in which it is.
        texts = [command.text for command in documented.of(self)]
        (typed,) = {text.rpartition("/")[2] for text in texts}
        program, *arguments = shlex.split(typed)
        result = subprocess.run(
            [pathlib.Path(sys.executable).parent / program, *arguments],
            check=False,
            capture_output=True,
            text=True,
            env=os.environ | {"HOME": str(folder)},
        )
        self.assertEqual(2, result.returncode, result.stdout + result.stderr)
        for words in ("found 'x', expected one of", "found 'off'"):
            self.assertIn(words, result.stdout)


class ChecksTest(ConfigCase):
    # (value of available_filters, code, words)
    AVAILABLE = (
        (f"{NOVAS},{OURS}.all_filters", 0, ""),
        # Names of classes do as well.
        (f"{NOVAS},{OURS}.PerfVMFilter,{NUMA}", 0, ""),
        (f"{COMPUTE},{OURS}.PerfVMFilter,{NUMA}", 0, ""),
        (f"{NOVAS},{OURS}.PerfVMFilter", 2, f"lacks {OURS}.all_filters"),
        (f"{OURS}.all_filters", 2, f"lacks {NOVAS}:"),
        (f"{NOVAS},{OURS}.all_filter", 2, "nova-scheduler does not start: "),
        (f"{NOVAS},{OURS}.time.tzname", 2, "nova-scheduler does not start: "),
    )

    def check(self, expected, words, *changes, policy=""):
        """Check the worst code and the details, with these options of nova.conf."""
        self.policy_file(f'schema_version: "1.0"\n{policy}')
        for groups in (RIGHT, *changes):
            for group, values in groups.items():
                self.config.config(group=group, **values)
        checks = upgrade_check.Checks()
        results = [check(checks) for _, check in checks._upgrade_checks]
        details = " ".join(result.details or "" for result in results)
        self.assertEqual(expected, max(r.code.value for r in results), details)
        self.assertIn(words, details)
        return details

    def test_policy_and_mode(self):
        self.check(2, "found 'x', expected", policy="placement: x\n")
        # What is inherent is no warning.
        self.check(0, "policy.no_cpu_for_host")
        observe = {"perfvm": {"mode": "observe"}}
        self.check(1, "mode is observe: PerfVMFilter refuses nothing", observe)
        digest = loader.parse(f'schema_version: "1.0"\n{QUIET}').digest
        self.check(0, f"perfvm.yaml, SHA-256 {digest}", policy=QUIET)

    def test_filters(self):
        for text, expected, words in filter_lists.LISTS:
            worst = max((LEVELS[code] for code in expected), default=Level.OK)
            code = {Level.WARNING: 1, Level.FAILURE: 2}.get(worst, 0)
            details = self.check(code, words, enabled(text), policy=QUIET)
            self.assertEqual(len(expected), details.count("options."))
        group = {"available_filters": [NOVAS]}
        lacks = "lacks nova_perfvm.scheduler.filters.all_filters"
        self.check(2, lacks, {"filter_scheduler": group})
        right = enabled("ComputeFilter,PerfVMFilter,PerfVMNUMATopologyFilter")
        for names, code, words in self.AVAILABLE:
            group = {"available_filters": names.split(",")}
            changes = {"filter_scheduler": group}, right
            details = self.check(code, words, *changes, policy=QUIET)
            self.assertEqual(code == 2, "options.filters_unavailable" in details)
        novas = enabled("PerfVMFilter,NUMATopologyFilter")
        self.check(2, "options.not_steered", novas, policy=CELLS)
        accepted = f"{QUIET}accept: [options.judged_twice]\n"
        twice = enabled("PerfVMFilter,PerfVMNUMATopologyFilter,NUMATopologyFilter")
        self.check(0, "(accepted in the policy)", twice, policy=accepted)

    def test_a_filter_of_nova_that_is_not_known(self):
        right = enabled("PerfVMFilter,PerfVMNUMATopologyFilter")
        # Bugs of this Nova are named beside.
        self.assertNotIn("is not", self.check(0, "", right, policy=QUIET))
        method = numa_filter.REPLACED
        name = "nova_perfvm.scheduler.nova_internals.source_hash"
        self.useFixture(fixtures.MonkeyPatch(name, lambda _part: "another"))
        self.check(1, "is not the one", right, policy=QUIET)
        self.check(
            1,
            f"differs from the releases that nova_perfvm was tested with in "
            f"{method} (scheduler/numa_filter.py",
            right,
            policy=QUIET,
        )

    def test_options_of_a_scheme(self):
        accepted = "accept: [options.fallback_query]\n"
        self.check(1, "also come to hosts without", FALLBACK)
        self.check(0, "(accepted in the policy)", FALLBACK, policy=accepted)
        self.check(0, "policy.rests_on_fallback", FALLBACK, ISOLATED, policy=UNITS)
        # Of elastic hosts no policy accepts it.
        none, wrong = "no pinned VM comes to elastic hosts", UNITS + accepted
        self.check(2, none, ISOLATED, policy=wrong)
        lacks = {"scheduler": {"enable_isolated_aggregate_filtering": False}}
        self.check(2, "VMs without units come to", FALLBACK, lacks, policy=UNITS)
        right = (enabled("PerfVMFilter,PerfVMNUMATopologyFilter"), ISOLATED)
        for packs, code in ((False, 0), (True, 1)):
            found = {"compute": {NUMA_PACKING.option: packs}}
            details = self.check(code, "", *right, found, policy=CELLS)
            self.assertEqual(packs, "options.numa_packing" in details)

    def test_options_that_nova_has_no_more(self):
        gone = dataclasses.replace(FALLBACK_QUERY, section="scheduler")
        settings = "nova_perfvm.placement.host_schemes.units.UnitsHosts.settings"
        self.useFixture(fixtures.MonkeyPatch(settings, (gone,)))
        self.check(2, "options.fallback_query_gone: this Nova", policy=UNITS)


class InstalledCase(testtools.TestCase):
    def result(self, check, installed, files):
        """Return what a check says of a Nova, by its version and its source."""
        versions = {"nova": installed}.__getitem__
        with (
            fixtures.MonkeyPatch("importlib.metadata.version", versions),
            Source(files),
        ):
            return getattr(upgrade_check.Checks(), check)()


class RebuildHintTest(InstalledCase):
    """CVE-2026-46448, by the release of Nova or by its source."""

    # (version, what mends it if the source shows no fix)
    RELEASES = (
        ("30.2.1", "31.3.1"),
        ("31.3.0", "31.3.1"),
        ("31.3.1", None),
        ("31.4.0", None),
        ("32.0.0.0rc1", "32.2.1"),
        ("32.2.1.dev3", "32.2.1"),
        ("32.2.1", None),
        ("32.10.0", None),
        ("33.0.1", "33.0.2"),
        ("33.0.2", None),
        ("33.1.0.dev3", "34.0.0"),
        ("34.0.0.0rc1", "34.0.0"),
        ("34.0.0", None),
        ("40.0.0", None),
    )

    def test_every_release_and_the_one_that_mends_it(self):
        for installed, expected in self.RELEASES:
            result = self.result("check_rebuild_hint", installed, WITHOUT)
            failed = upgradecheck.Code.FAILURE
            code = failed if expected else upgradecheck.Code.SUCCESS
            self.assertEqual(code, result.code)
            if expected:
                self.assertIn(f"Nova {installed} takes", result.details)
                self.assertIn(f"upgrade Nova to {expected},", result.details)

    def test_a_checkout_without_the_fix_newer_than_all_releases_with_it(self):
        for installed in ("34.0.1.dev3", "35.0.0.0rc1"):
            result = self.result("check_rebuild_hint", installed, WITHOUT)
            self.assertEqual(upgradecheck.Code.FAILURE, result.code)
            self.assertIn(f"Nova {installed} takes", result.details)
            self.assertIn("take a Nova with the fix of that bug", result.details)

    def test_a_fix_that_the_source_shows(self):
        for installed, _ in self.RELEASES:
            result = self.result("check_rebuild_hint", installed, WITH_FIXES)
            self.assertEqual(upgradecheck.Code.SUCCESS, result.code)


class KnownBugsTest(InstalledCase):
    """Which bugs are listed, and which release is named."""

    LOST = "conductor/tasks/live_migrate.py"

    def test_versions_and_sources(self):
        mended = {self.LOST: WITH_FIXES[self.LOST]}
        lost, pins = "LP 2153425: ", "LP 2152697: "
        for _name, installed, files, listed, named in (
            ("a release", "33.0.2", WITHOUT, {lost, pins}, "33.0.2"),
            ("a package", "33.0.2", WITHOUT | mended, {pins}, "33.0.2"),
            ("behind a release", "33.0.3.dev5", WITHOUT, {lost, pins}, "33"),
            ("on the way", "33.1.0.dev373", WITHOUT | mended, {pins}, "33"),
            ("nearly there", "33.1.0.dev700", WITH_FIXES, set(), "33"),
            ("before a fix", "34.0.0.0b2.dev1", WITHOUT, {lost, pins}, "34"),
            ("before the bug", "32.1.0.dev9", WITHOUT, {lost}, "32"),
            ("no source", "33.0.2", {}, {lost, pins}, "33.0.2"),
        ):
            result = self.result("check_known_bugs", installed, files)
            self.assertEqual(upgradecheck.Code.SUCCESS, result.code)
            details = result.details or ""
            self.assertEqual(listed, {b for b in (lost, pins) if b in details})
            _, _, command = details.partition("known-bugs --to ")
            self.assertEqual(named, command)
            known_release(named)

    def test_a_release_of_which_no_bugs_are_known(self):
        """The command would refuse it."""
        for installed in ("35.0.0", "35.0.0.0rc1"):
            result = self.result("check_known_bugs", installed, WITHOUT)
            self.assertEqual(upgradecheck.Code.WARNING, result.code)
            self.assertIn("not checked: found '35", result.details)
