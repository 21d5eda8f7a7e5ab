# SPDX-License-Identifier: Apache-2.0

import ast
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from unittest import mock

import fixtures
import testtools
from docutils.utils import smartquotes
from oslo_config import cfg

from nova_perfvm import conf, rules
from nova_perfvm import constants as const
from nova_perfvm.documents.keys import keys_of
from nova_perfvm.findings import AUDIT_CODES, LEVELS, Level
from nova_perfvm.generate import inventory, options
from nova_perfvm.measure.checks import guest, host, spread
from nova_perfvm.measure.checks.check import checks_of
from nova_perfvm.osc.audit import Audit
from nova_perfvm.policy import loader
from nova_perfvm.rules.enabled_filters import FILTER, NUMA_FILTER
from nova_perfvm.sizing.services import Service
from tests.unit.test_boundaries import ROOMS

ROOT = pathlib.Path(__file__).parents[2]
TEXTS = {".rst", ".inc", ".py", ".sh", ".yaml", ".html"}


def code_blocks(page):
    """Return the code-blocks of a page, each with its language."""
    text = (ROOT / f"doc/source/{page}.rst").read_text()
    blocks = re.findall(r"code-block:: (\w+)\n\n((?: {3}.*\n|\n)+)", text)
    return [(language, textwrap.dedent(block)) for language, block in blocks]


def tests_below(suite):
    """Return the modules, classes and methods of tests below a directory."""
    bases, methods = {}, {}
    for path in (ROOT / suite).rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                key = (module, node.name)
                bases[key] = [ast.unparse(base).split(".")[-1] for base in node.bases]
                methods[key] = {
                    item.name for item in node.body if isinstance(item, ast.FunctionDef)
                }
    found = {module for module, _ in methods}
    for (module, name), own in methods.items():
        inherited = {
            method
            for (_, other), theirs in methods.items()
            if other in bases[module, name]
            for method in theirs
        }
        found |= {f"{module}.{name}"}
        found |= {f"{module}.{name}.{method}" for method in own | inherited}
    return found


class GuaranteesTest(testtools.TestCase):
    """A cell of the table stands for a test that is there."""

    def setUp(self):
        super().setUp()
        self.text = (ROOT / "doc/source/admin/guarantees.rst").read_text()

    def test_every_test_exists(self):
        named = set(re.findall(r"``(test_[a-z_]+(?:\.\w+)*)``", self.text))
        self.assertGreater(len(named), 20)
        self.assertEqual(set(), named - self._tests())

    def _tests(self):
        """Return modules, classes and methods as the table names them.

        The page says below which directories they are.
        """
        (said,) = re.findall(r"is the test that shows it, below ([^.]+)", self.text)
        return {
            name.removeprefix(f"{suite.replace('/', '.')}.")
            for suite in re.findall("``(tests/[a-z]+)``", said)
            for name in tests_below(suite)
        }


class TimerTest(testtools.TestCase):
    """The files of the page on monitoring that heal a cloud every few minutes."""

    def setUp(self):
        super().setUp()
        texts = code_blocks("admin/monitoring")
        self.units = [text for language, text in texts if language == "ini"]
        (self.cron,) = (text for language, text in texts if language == "text")

    def test_systemd_takes_the_units(self):
        analyze = shutil.which("systemd-analyze")
        if analyze is None:
            self.skipTest("there is no systemd-analyze")
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        paths = [directory / f"perfvm-heal.{kind}" for kind in ("service", "timer")]
        for path, text in zip(paths, self.units, strict=True):
            path.write_text(text.replace("/usr/bin/openstack", sys.executable))
        done = subprocess.run(
            [analyze, "verify", "--man=no", *paths], capture_output=True, check=False
        )
        # What it does not know it passes over, with exit status 0.
        self.assertEqual((0, b"", b""), (done.returncode, done.stdout, done.stderr))

    def test_the_line_for_cron(self):
        *times, user, command = self.cron.strip().split(maxsplit=6)
        self.assertEqual((["*/3", "*", "*", "*", "*"], "root"), (times, user))
        # It means the end of the line to cron.
        self.assertNotIn("%", command)
        subprocess.run(["/bin/sh", "-n", "-c", command], check=True)

    def test_both_run_what_there_is(self):
        for text in (self.units[0], self.cron):
            words = shlex.split(re.search("openstack perfvm audit (.*)", text)[1])
            parser = Audit(mock.Mock(), None).get_parser("audit")
            parsed = parser.parse_args(words[: words.index("--output") + 2])
            self.assertEqual((True, True), (parsed.heal, parsed.yes))
            # Its age tells that a run did nothing; the exit status does not.
            self.assertEqual("prometheus", parsed.formatter)
            self.assertEqual(".prom", pathlib.Path(parsed.output).suffix)


class PathsTest(testtools.TestCase):
    """What the pages name of this tree is there."""

    def setUp(self):
        super().setUp()
        pages = [*ROOT.glob("*.rst"), *ROOT.glob("doc/source/**/*.rst")]
        # Commands that go on in the next line
        self.pages = {
            page.relative_to(ROOT): re.sub(r" *\\\n *", " ", page.read_text())
            for page in pages
        }

    def test_every_path_exists(self):
        # Not the same names below the directories of others: /etc/nova_perfvm.
        path = re.compile(r"(?<![\w./~-])(?:tests|nova_perfvm)/[\w./*-]*\w")
        named = self._named(path)
        self.assertGreater(len(named), 20)
        for page, name in named:
            # Modules of tests stand without their suffix, as stestr has them.
            there = [*ROOT.glob(name), *ROOT.glob(f"{name}.py")]
            self.assertNotEqual([], there, f"{page}: {name}")

    def test_every_module_that_is_run_exists(self):
        named = self._named(re.compile(r"python -m (tests\.[\w.]*\w)"))
        self.assertGreater(len(named), 4)
        for page, name in named:
            path = ROOT / name.replace(".", "/")
            there = path.with_suffix(".py").exists() or (path / "__main__.py").exists()
            self.assertTrue(there, f"{page}: {name}")

    def test_every_selection_has_tests(self):
        run = r"stestr --test-path \./(\S+) run(?: --\w+ \d+)* ([\w.]+)"
        make = r"make (?:test-)?(\w+)\s+\w+_TESTS=([\w.]+)"
        selected = self._named(re.compile(run)) + [
            (page, (f"tests/{suite}", pattern))
            for page, (suite, pattern) in self._named(re.compile(make))
        ]
        self.assertGreater(len(selected), 5)
        for page, (directory, pattern) in selected:
            there = any(re.search(pattern, name) for name in tests_below(directory))
            self.assertTrue(there, f"{page}: no {pattern} in {directory}")

    def _named(self, pattern):
        return [
            (page, found)
            for page, text in self.pages.items()
            for found in pattern.findall(text)
        ]


class CodesTest(testtools.TestCase):
    """Each code is on its page, with its level and in its order."""

    CODE = r"^``([a-z_.]+)``\n   \S"

    def rows(self, page, pattern=CODE):
        text = (ROOT / f"doc/source/{page}.rst").read_text()
        return re.findall(pattern, text, re.MULTILINE)

    def test_of_the_audit(self):
        text = (ROOT / "doc/source/admin/audit.rst").read_text()
        documented = {}
        for level in list(Level)[1:]:
            title = level.value.capitalize()
            heading = f"\n{title}\n{'=' * len(title)}\n"
            section = text[text.index(heading) + len(heading) :]
            section = re.split(r"\n=+\n", section)[0]
            for code in re.findall(self.CODE, section, re.MULTILINE):
                self.assertNotIn(code, documented)
                documented[code] = level
        self.assertEqual({code: LEVELS[code] for code in AUDIT_CODES}, documented)

    def test_of_others(self):
        documented = [
            (code, level.lower())
            for level, below in self.rows(
                "reference/audit", r"^\.\. rubric:: (\w+)\n\n((?:``.+\n(?:   .+\n)+)+)"
            )
            for code in re.findall(self.CODE, below, re.MULTILINE)
        ]
        self.assertEqual(
            sorted((c, LEVELS[c].value) for c in LEVELS if c not in AUDIT_CODES),
            sorted(documented),
        )
        text = (ROOT / "doc/source/reference/reasons.rst").read_text()
        documented = re.findall(r"^``([a-z]+\.[a-z_]+)``  ", text, re.MULTILINE)
        self.assertEqual(sorted(const.OUTER_CODES), sorted(documented))

    def test_of_machines(self):
        for page, checks in (
            ("admin/guest-checks", guest),
            ("admin/host-checks", host),
        ):
            codes = [check.code for check in checks_of(checks)]
            detailed = self.rows(page, r"^   ``([a-z_.]+)``\n      \S")
            self.assertGreater(len(detailed), 10, page)
            self.assertEqual([c for c in codes if c in detailed], detailed, page)
        limits = self.rows("admin/guest-checks", r"^(\d+) +([\d.]+)$")
        self.assertGreater(len(limits), 3)
        for flows, limit in limits:
            found = spread.least_effective(int(flows), 20)
            self.assertEqual(limit, f"{found:.2f}", flows)


class ArchitectureTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.text = (ROOT / "doc/source/contributor/architecture.rst").read_text()

    def test_the_rooms_are_listed_in_their_order(self):
        listed = re.findall(r"^([a-z_]+)\n   ", self.text, re.MULTILINE)
        self.assertEqual(list(ROOMS), listed)

    def test_the_files_of_the_worked_example_are_there(self):
        table = self.text[self.text.index("touches these files:") :]
        files = re.findall(r"^``(\S+)``  ", table, re.MULTILINE)
        # A rule is in one place; with a key, a fact and a term of the contract of
        # its own it takes no more than these.
        self.assertEqual(12, len(files))
        for name in files:
            whole = name.startswith(("tests", "doc", "etc"))
            root = ROOT if whole else ROOT / "nova_perfvm"
            self.assertTrue((root / name).exists(), name)


class PackageTest(testtools.TestCase):
    """Until there is a release, no index has the package."""

    INSTALLS = re.compile(
        r"pip install[^\n]*nova-perfvm|packages\w*\W.*\[\W?nova-perfvm"
    )

    def test_it_is_installed_from_a_checkout(self):
        found = {}
        pages = {ROOT / "README.rst", ROOT / "CONTRIBUTING.rst"}
        for folder in ("doc", "devstack", "etc", "nova_perfvm"):
            pages |= {p for p in (ROOT / folder).rglob("*") if p.suffix in TEXTS}
        for path in pages:
            if said := self.INSTALLS.findall(path.read_text()):
                found[path.name] = said
        self.assertEqual({}, found)

    def test_pages_say_it_by_one_include(self):
        text = (ROOT / "doc/source/install-package.inc").read_text()
        self.assertIn(f"pip install '{const.PACKAGE}[measure]'", text)
        for page in (ROOT / "doc/source").rglob("*.rst"):
            said = page.read_text()
            if f"pip install {const.PACKAGE}" in said:
                self.assertIn(".. include:: /install-package.inc", said, page.name)


class TypographyTest(testtools.TestCase):
    def test_options_keep_their_hyphens(self):
        text = (ROOT / "doc/source/conf.py").read_text()
        (action,) = re.findall('^smartquotes_action = "(.*)"$', text, re.MULTILINE)
        said = "only with --heal, and host's"
        self.assertEqual(
            said.replace("'", "\u2019"), smartquotes.smartyPants(said, attr=action)
        )

    def test_no_cell_of_a_table_is_a_bullet(self):
        for page in (ROOT / "doc/source").rglob("*.rst"):
            found = re.findall(r"^\S.*  -(?:  .*)?$", page.read_text(), re.MULTILINE)
            self.assertEqual([], found, page.name)


class SignalsTest(testtools.TestCase):
    """A substitution that yields 0 lets kill signal the shell's own session."""

    def test_nothing_is_killed_by_a_number_that_is_looked_up(self):
        found = {}
        for folder in ("doc", "devstack", "etc", "nova_perfvm", "releasenotes"):
            for path in (ROOT / folder).rglob("*"):
                if path.suffix in TEXTS:
                    said = re.findall(r"\bkill\b.*(?:\$\(|`pid)", path.read_text())
                    found |= {path.name: said} if said else {}
        self.assertEqual({}, found)


class SampleTest(testtools.TestCase):
    def test_the_sample_has_every_option(self):
        text = (ROOT / "etc/nova_perfvm/perfvm.conf.sample").read_text()
        for group, opts in conf.list_opts():
            self.assertIn(f"[{group.name}]", text)
            for opt in opts:
                self.assertRegex(text, rf"(?m)^#{opt.name} = ")


class ReadmeTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.text = (ROOT / "README.rst").read_text()

    def test_what_it_points_to_is_there(self):
        # Links that a browser follows, not names of files.
        named = re.findall(r"`[^`]+\s<([^>]+)>`_", self.text)
        named += re.findall(r"^\.\. image:: (\S+)$", self.text, re.MULTILINE)
        self.assertGreater(len(named), 10)
        for name in named:
            self.assertTrue((ROOT / name).is_file(), name)


class ServicesTest(testtools.TestCase):
    def test_the_page_has_every_column(self):
        page = (ROOT / "doc/source/admin/sizing.rst").read_text()
        named = {key.name for key in keys_of(Service)}
        self.assertGreater(len(named), 10)
        self.assertEqual(set(), {one for one in named if f"``{one}``" not in page})


class InstallTest(testtools.TestCase):
    def test_the_settings_are_those_that_the_policy_rests_on(self):
        """As Nova reads them, which joins the lines of a list."""
        page = (ROOT / "doc/source/admin/install.rst").read_text()
        text = page[page.index("    [filter_scheduler]") : page.index("    [perfvm]")]
        self.assertLessEqual(max(map(len, text.splitlines())), 90)
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).join("nova.conf"))
        path.write_text(textwrap.dedent(text))
        found = cfg.ConfigOpts()
        found.register_opts(
            [cfg.ListOpt("enabled_filters"), cfg.MultiStrOpt("available_filters")],
            group="filter_scheduler",
        )
        found(["--config-file", str(path)])
        section = found.filter_scheduler
        *_, last_but_one, last = section.enabled_filters
        self.assertEqual((FILTER, NUMA_FILTER), (last_but_one, last))
        self.assertEqual(
            list(options.AVAILABLE_FILTERS.values), section.available_filters
        )


class FirstProofTest(testtools.TestCase):
    """The pages from the survey of a running cloud to the first proven VM."""

    PAGES = (
        *("admin/survey", "admin/brownfield", "admin/install", "admin/nvme-tcp"),
        *("user/first-boot", "admin/prove"),
    )

    def test_they_are_short(self):
        texts = [(ROOT / f"doc/source/{name}.rst").read_text() for name in self.PAGES]
        self.assertLessEqual(sum(len(text.split()) for text in texts), 3000)

    def test_the_page_that_leads_names_the_others(self):
        leading = (ROOT / "doc/source/admin/brownfield.rst").read_text()
        for name in ("survey", "install", "/user/first-boot", "prove"):
            self.assertIn(f":doc:`{name}`", leading)


class InventoryTest(testtools.TestCase):
    def test_the_example_is_an_inventory_file(self):
        (text,) = (t for name, t in code_blocks("admin/explain") if name == "yaml")
        hosts = inventory.parse(text, loader.load())
        # The dedicated CPUs and the memory in GiB; of a core with two threads one.
        found = {
            name: (
                sum(len(cell.pcpuset) for cell in cells),
                sum(cell.memory_mb for cell in cells) // 1024,
            )
            for name, cells in hosts.items()
        }
        self.assertEqual({"hp1": (40, 512), "hp2": (40, 0), "hp3": (36, 512)}, found)


class LayersTest(testtools.TestCase):
    def test_every_layer_is_listed(self):
        text = (ROOT / "doc/source/admin/explain.rst").read_text()
        listed = re.findall(r"^``(\w+)\.``  ", text, re.MULTILINE)
        found = (*rules.REASON_CODES, *const.OUTER_CODES)
        self.assertEqual({code.partition(".")[0] for code in found}, set(listed))
