# SPDX-License-Identifier: Apache-2.0

import email
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile

import testtools

from tests import documented

ROOT = pathlib.Path(__file__).parents[2]
CONSTRAINTS = ROOT / "tests" / "constraints.txt"

# What an extra brings, or what the package is loaded by; a machine that has only
# the package has none of it.
OF_OTHERS = {
    "neutron_lib",
    "nova",
    "osc_lib",
    "oslo_upgradecheck",
    "tempest",
    "watcher",
}

# {group: {entry point: what its import lacks}} of the package, for a fresh process.
LOAD = """
import collections, importlib.metadata, json
lacking = collections.defaultdict(dict)
for entry in importlib.metadata.distribution("nova-perfvm").entry_points:
    try:
        entry.load()
    except ModuleNotFoundError as error:
        lacking[entry.group][entry.name] = error.name
    else:
        lacking[entry.group][entry.name] = None
print(json.dumps(lacking))
"""


def run(*command, cwd=None):
    """Return what a command printed; one that fails is an error of the test."""
    # Or this tree would be found where only the wheel is to be.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    ran = subprocess.run(
        [*map(str, command)],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env=environment,
        text=True,
    )
    if ran.returncode:
        raise AssertionError(f"{command}: {ran.returncode}\n{ran.stdout[-4000:]}")
    return ran.stdout


class PackageTest(testtools.TestCase):
    """The sdist of what git has, the wheel of the sdist, and the wheel installed."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        if not (ROOT / ".git").exists():
            raise cls.skipException("not a clone: git says what is to be packed")
        # With what is changed and not committed, and without what lies about.
        changed = run("git", "stash", "create", cwd=ROOT).strip() or "HEAD"
        commit = run("git", "rev-parse", changed, cwd=ROOT).strip()
        source = cls.folder / "source"
        run("git", "clone", "--quiet", "--shared", "--no-checkout", ROOT, source)
        run("git", "checkout", "--quiet", "--detach", commit, cwd=source)
        dist = cls.folder / "dist"
        build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", dist]
        cls.said = run(*build, source)
        (cls.sdist,) = dist.glob("*.tar.gz")
        (cls.wheel,) = dist.glob("*.whl")
        clean = cls.folder / "clean"
        venv.create(clean, with_pip=True)
        cls.programs = clean / "bin"
        cls.run_there("pip", "install", "--constraint", CONSTRAINTS, cls.wheel)

    @classmethod
    def run_there(cls, program, *arguments):
        """Run a program of the virtual environment that has the wheel alone."""
        return run(cls.programs / program, *arguments, cwd=cls.folder)

    def metadata(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            (name,) = [n for n in wheel.namelist() if n.endswith("/METADATA")]
            return email.message_from_bytes(wheel.read(name))

    def test_building_warns_of_nothing_that_ends(self):
        # distutils' own "warning: no previously-included files" are of no concern.
        warned = [
            n for n in self.said.splitlines() if re.search(r"[dD]eprecat|Warn", n)
        ]
        self.assertEqual([], warned)

    def test_metadata(self):
        metadata = self.metadata()
        self.assertEqual("Apache-2.0", metadata["License-Expression"])
        self.assertRegex(metadata["Version"], r"^0\.1\.0(\.dev\d+)?$")

    def test_an_index_takes_both(self):
        said = run(
            *(sys.executable, "-m", "twine", "--no-color", "check", "--strict"),
            *(self.sdist, self.wheel),
        )
        passed = re.findall(r"Checking \S+/([^/]+): PASSED", said.replace("\n", ""))
        self.assertEqual({self.sdist.name, self.wheel.name}, set(passed), said)

    def test_an_archive_without_git_is_built_by_its_version(self):
        """As the page of releases says it: pbr finds no version there."""
        archive = self.folder / "archive"
        archive.mkdir()
        packed = archive / "source.tar"
        run("git", "archive", "--output", packed, "HEAD", cwd=self.folder / "source")
        (archive / "source").mkdir()
        run("tar", "--extract", "--file", packed, "--directory", archive / "source")
        run(
            *("env", "PBR_VERSION=0.1.0", sys.executable, "-m", "build", "--wheel"),
            *("--no-isolation", "--outdir", archive, archive / "source"),
        )
        (wheel,) = archive.glob("*.whl")
        self.assertEqual("nova_perfvm-0.1.0-py3-none-any.whl", wheel.name)

    def test_the_sdist_has_what_tests_it(self):
        with tarfile.open(self.sdist) as sdist:
            names = {name.partition("/")[2] for name in sdist.getnames()}
        tracked = set(run("git", "ls-files", cwd=self.folder / "source").splitlines())
        ours = {name for name in tracked if not name.startswith(".git")}
        self.assertEqual(set(), ours - names)

    def test_the_wheel_has_the_package_alone(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            names = wheel.namelist()
        data = r"nova_perfvm-[^/]*\.(dist-info|data/data/etc/nova_perfvm)/"
        others = [n for n in names if not re.match(rf"nova_perfvm/|{data}", n)]
        self.assertEqual([], others)
        # Tempest's own way: what a plugin brings are tests.
        tests = {n for n in names if re.search(r"/(tests?|test_\w+\.py)(/|$)", n)}
        self.assertEqual(
            [], [n for n in tests if not n.startswith("nova_perfvm/tempest_plugin/")]
        )
        source = self.folder / "source"
        modules = (source / "nova_perfvm").rglob("*.py")
        modules = {str(path.relative_to(source)) for path in modules}
        self.assertGreater(len(modules), 300)
        self.assertEqual(set(), modules - set(names))

    def test_files_of_monitoring_are_where_their_page_says(self):
        (command,) = documented.of(self)
        _, *arguments = shlex.split(command.text)
        data = pathlib.Path(self.run_there("python", *arguments).strip())
        page = (ROOT / "doc/source/admin/monitoring.rst").read_text()
        named = re.findall(r"``(etc/nova_perfvm/\S+)``", page)
        self.assertEqual(3, len(named))
        for name in named:
            self.assertEqual((ROOT / name).read_text(), (data / name).read_text())

    def test_entry_points_lack_only_what_extras_bring(self):
        lacking = json.loads(self.run_there("python", "-c", LOAD))
        self.assertEqual({None}, set(lacking["openstack.perfvm.v1"].values()))
        self.assertEqual({None}, set(lacking["oslo.config.opts"].values()))
        self.assertEqual({None}, set(lacking["nova_perfvm.properties"].values()))
        found = {name for group in lacking.values() for name in group.values()}
        self.assertEqual(set(), found - {None} - OF_OTHERS)

    def test_without_nova_the_upgrade_check_says_so(self):
        """As a real environment has it: the package, and not the extra."""
        ran = subprocess.run(
            [self.programs / "nova-perfvm-status", "upgrade", "check"],
            check=False,
            capture_output=True,
            cwd=self.folder,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            text=True,
        )
        self.assertEqual((3, ""), (ran.returncode, ran.stdout))
        (line,) = ran.stderr.splitlines()
        self.assertIn("nothing was checked", line)
        self.assertIn(str(self.programs.parent), line)

    def test_the_command_line_works(self):
        self.assertIn("No broken requirements", self.run_there("pip", "check"))
        version = self.metadata()["Version"]
        self.assertEqual(
            f"nova-perfvm {version}\n", self.run_there("nova-perfvm", "--version")
        )
        configure = ("--mode", "dedicated", "--topology", "2x20", "--memory-gb", "500")
        for words, *arguments in (
            ("policy check", "--help"),
            (": valid", "policy", "check"),
            ("cpu_dedicated_set", "host", "config", *configure),
        ):
            self.assertIn(words, self.run_there("nova-perfvm", *arguments))
