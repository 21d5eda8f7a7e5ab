# SPDX-License-Identifier: Apache-2.0

import configparser
import pathlib
import re
import subprocess
import sys
import tempfile

import testtools
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from nova_perfvm.known_bugs import Release, all_bugs
from nova_perfvm.scheduler import upgrade_check
from tests import releases

ROOT = pathlib.Path(__file__).parents[2]
CYCLES = ("2025.1", "2025.2", "2026.1", "2026.2")
# What developers alone install, with the constraints.
OF_DEVELOPERS = {"docs", "lint", "test"}
# Its environment has no Nova, and constraints of its own.
OF_WATCHER = "watcher"


def configuration(name):
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string((ROOT / name).read_text())
    return parser


def project():
    """Return which jobs Zuul runs when."""
    entries = yaml.safe_load((ROOT / ".zuul.yaml").read_text())
    (found,) = (entry["project"] for entry in entries if "project" in entry)
    return found


class PythonTest(testtools.TestCase):
    def test_pages_ask_for_the_version_that_installs(self):
        metadata = configuration("setup.cfg")["metadata"]
        version = metadata["python_requires"].removeprefix(">=")
        self.assertIn(f"Python :: {version}\n", metadata["classifier"])
        for page in ("README.rst", "CONTRIBUTING.rst"):
            named = re.findall(r"Python (\d\.\d+)", (ROOT / page).read_text())
            self.assertEqual({version}, set(named), page)

    def test_make_names_a_python_that_is_too_old(self):
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder) / "venv"
            command = ["make", f"PYTHON={sys.executable}", f"VENV={made}"]
            ran = subprocess.run(
                [*command, "PYTHON_REQUIRES=99.1", f"{made}/.installed"],
                check=False,
                capture_output=True,
                cwd=ROOT,
                text=True,
            )
            self.assertEqual(2, ran.returncode, ran)
            self.assertFalse(made.exists())
        self.assertIn("Python 99.1 or newer is needed", ran.stderr)
        self.assertIn("PYTHON=python99.1", ran.stderr)

    def test_each_version_has_a_job(self):
        classifiers = configuration("setup.cfg")["metadata"]["classifier"]
        versions = re.findall(r"Python :: (\d)\.(\d+)$", classifiers, re.MULTILINE)
        jobs = {job for job in project()["check"]["jobs"] if "-py" in job}
        self.assertEqual({f"openstack-tox-py{a}{b}" for a, b in versions}, jobs)


class SuitesTest(testtools.TestCase):
    def test_make_runs_each(self):
        makefile = (ROOT / "Makefile").read_text()
        for suite in {path.parent.name for path in ROOT.glob("tests/*/test_*.py")}:
            self.assertRegex(makefile, rf"--test-path \./tests/{suite} run", suite)


class ExtrasTest(testtools.TestCase):
    def test_tox_installs_what_make_does(self):
        tox = configuration("tox.ini")
        extras = {
            extra
            for section in ("testenv", "testenv:pep8", "testenv:docs")
            for extra in tox[section]["extras"].split()
        } - {"{[testenv]extras}"}
        (installed,) = re.findall(
            r"\$\(PIP\) .*--editable '\.\[([\w,]+)\]'", (ROOT / "Makefile").read_text()
        )
        self.assertEqual(set(installed.split(",")), extras)


class PackagesTest(testtools.TestCase):
    def test_bindep_has_what_continuous_integration_installs(self):
        text = (ROOT / ".ci/run").read_text()
        calls = re.findall(r"^ +install ([a-z].*)$", text, re.MULTILINE)
        self.assertGreater(len(calls), 3)
        installed = {package for call in calls for package in call.split()}
        lines = (ROOT / "bindep.txt").read_text().splitlines()
        listed = {line.split()[0] for line in lines if line[:1].isalpha()}
        # A browser is for what runs at night alone.
        self.assertEqual({"chromium"}, listed - installed)
        self.assertEqual(set(), installed - listed)


class ReleasesTest(testtools.TestCase):
    """Nova's cycles that tests run on, and what is said of them."""

    def pins(self, cycle):
        lines = releases.constraints(cycle).read_text().splitlines()
        pins = dict(line.split("==") for line in lines if "==" in line)
        return {canonicalize_name(name): Version(pins[name]) for name in pins}

    def requirements(self):
        extras = configuration("setup.cfg")["extras"]
        others = OF_DEVELOPERS | {OF_WATCHER}
        lists = [extras[name] for name in extras if name not in others]
        lists.append((ROOT / "requirements.txt").read_text())
        lines = [
            line.partition("#")[0].strip()
            for text in lists
            for line in text.splitlines()
        ]
        return [Requirement(line) for line in lines if line]

    def test_lower_bounds_are_what_tests_ran_on(self):
        pins = [self.pins(cycle) for cycle in CYCLES]
        requirements = self.requirements()
        self.assertGreater(len(requirements), 20)
        for requirement in requirements:
            name = canonicalize_name(requirement.name)
            lowest = min(found[name] for found in pins)
            (bound,) = (s.version for s in requirement.specifier if s.operator == ">=")
            self.assertEqual(lowest, Version(bound), requirement.name)
            for found in pins:
                self.assertIn(found[name], requirement.specifier, requirement.name)

    def test_keystoneauth_works_with_the_lowest_stevedore(self):
        """These use generics of stevedore 5.6, and name 1.20 as their lower bound."""
        by_name = {r.name: r.specifier for r in self.requirements()}
        self.assertIn("5.4.1", by_name["stevedore"])
        for release in ("5.14.0", "5.15.0", "5.16.0"):
            self.assertNotIn(release, by_name["keystoneauth1"])
        # Those that say so bring another stevedore.
        for release in ("5.10.0", "5.13.1", "5.17.0", "5.18.1"):
            self.assertIn(release, by_name["keystoneauth1"])

    def test_watchers_lower_bound_is_what_tests_ran_on(self):
        line = configuration("setup.cfg")["extras"][OF_WATCHER].partition("#")[0]
        pins = (ROOT / "tests/constraints-watcher.txt").read_text().splitlines()
        self.assertIn(line.strip().replace(">=", "=="), pins)

    def test_the_extra_leaves_out_what_the_upgrade_check_fails_on(self):
        novas = [r.specifier for r in self.requirements() if r.name == "nova"]
        (hints_taken,) = (
            b for b in all_bugs() if b.number == upgrade_check.HINTS_TAKEN
        )
        self.assertEqual(2, len(novas))
        bad = ("31.3.0", "32.0.0", "32.1.0", "32.2.0", "33.0.0", "33.0.1")
        good = ("31.3.1", "32.2.1", "32.3.0", "33.0.2", "33.1.0", "34.0.0")
        for specifier in novas:
            for release in bad + good:
                holds = not hints_taken.affects(Release.parse(release))
                self.assertEqual(holds, release in good, release)
                self.assertEqual(holds, release in specifier, release)

    def test_each_cycle_has_an_environment_and_a_job(self):
        tox = configuration("tox.ini")
        (section,) = (name for name in tox if name.startswith("testenv:nova-"))
        self.assertEqual(f"testenv:nova-{{{','.join(CYCLES)}}}", section)
        named = re.findall(
            r"^([\d.]+): PIP_CONSTRAINT=\{toxinidir\}/(.*)$",
            tox[section]["setenv"],
            re.MULTILINE,
        )
        files = {c: str(releases.constraints(c).relative_to(ROOT)) for c in CYCLES}
        self.assertEqual(files, dict(named))
        jobs = yaml.safe_load((ROOT / ".zuul.yaml").read_text())
        environments = {
            entry["job"]["name"]: entry["job"].get("vars", {}).get("tox_envlist")
            for entry in jobs
            if "job" in entry
        }
        for cycle in CYCLES:
            job = f"nova-perfvm-nova-{cycle}"
            self.assertEqual(f"nova-{cycle}", environments[job])
            self.assertIn(job, project()["periodic"]["jobs"])
