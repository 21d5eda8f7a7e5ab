# SPDX-License-Identifier: Apache-2.0
import configparser
import pathlib

import fixtures
import testtools
import yaml
from hypothesis import given

from nova_perfvm.generate.hosts import HostConfigError, output, rendering
from tests.unit.generate.hosts.requests import configs, configured, policy_of


class RenderingTest(testtools.TestCase):
    @given(configs())
    def test_every_line_is_a_section_an_option_or_a_comment(self, config):
        for line in rendering.as_ini(config).splitlines():
            self.assertRegex(line, r"^(|#.*|\[\w+\]|[a-z_]+ = .+)$")

    def test_ini_reads_as_data(self):
        parser = configparser.ConfigParser(strict=False)
        config = configured()
        parser.read_string(rendering.as_files(config)["nova.conf"])
        expected = rendering.as_document(config)["nova_conf"]
        defaults = dict(parser.defaults())
        self.assertEqual(expected.pop("DEFAULT"), defaults)
        for section, options in expected.items():
            # A section has the options of [DEFAULT], too, to this parser.
            self.assertEqual(options | defaults, dict(parser.items(section)))

    def test_provider_yaml(self):
        config = configured()
        self.assertEqual(
            config.provider, yaml.safe_load(rendering.as_files(config)["provider.yaml"])
        )
        commented = rendering.as_ini(config)
        self.assertIn("#     uuid: $COMPUTE_NODE\n", commented)

    def test_files_of_a_host_without_slots(self):
        names = list(rendering.as_files(configured(mode="shared")))
        self.assertEqual(["nova.conf", "scheduler.conf", "placement.conf"], names)

    def test_two_lines_of_filters_and_one_retry(self):
        files = rendering.as_files(configured())
        self.assertEqual(2, files["scheduler.conf"].count("\navailable_filters = "))
        self.assertIn(
            "\nallocation_conflict_retry_count = 1\n", files["placement.conf"]
        )

    def test_kernel_arguments_are_on_one_line(self):
        policy = policy_of(mem_page_size="1GB")
        text = rendering.as_files(configured("2x22x2", policy=policy, reserve=2))
        (line,) = (
            line
            for line in text["nova.conf"].splitlines()
            if line.startswith("# kernel arguments: ")
        )
        self.assertIn("nohz_full=2-21,24-43,46-65,68-87 ", line)
        self.assertTrue(line.endswith("hugepages=0:246,1:246"), line)


class OutputTest(testtools.TestCase):
    KNOWN = ("a", "b", "c", "x/y/d", "x/e")

    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "new/dir"

    def write(self, files, force=False):
        output.write_files(self.path, files, self.KNOWN, force=force)

    def content(self):
        return {
            str(path.relative_to(self.path)): path.read_text()
            for path in self.path.rglob("*")
            if path.is_file()
        }

    def test_new(self):
        self.write({"a": "1", "b": "2"})
        self.assertEqual({"a": "1", "b": "2"}, self.content())

    def test_nothing_is_overwritten(self):
        self.write({"b": "old"})
        for files in ({"a": "1", "b": "2"}, {"a": "1"}):
            error = self.assertRaises(HostConfigError, self.write, files)
            self.assertIn("already has b", str(error))
            self.assertIn("--force", str(error))
            self.assertEqual({"b": "old"}, self.content())

    def test_below_directories(self):
        self.write({"a": "1", "x/y/d": "2", "x/e": "3"})
        self.assertEqual({"a": "1", "x/y/d": "2", "x/e": "3"}, self.content())
        error = self.assertRaises(HostConfigError, self.write, {"x/e": "4"})
        self.assertIn("already has a, x/y/d, x/e", str(error))
        self.write({"x/e": "4"}, force=True)
        self.assertEqual({"x/e": "4"}, self.content())

    def test_a_file_in_the_place_of_a_directory(self):
        self.write({"a": "1"})
        (self.path / "x").write_text("mine")
        error = self.assertRaises(HostConfigError, self.write, {"x/e": "2"}, force=True)
        self.assertIn("cannot write to", str(error))
        self.assertEqual({"a": "1", "x": "mine"}, self.content())

    def test_force_leaves_no_file_of_an_earlier_run(self):
        self.write({"a": "1", "b": "2"})
        (self.path / "mine").write_text("kept")
        self.write({"a": "3", "c": "4"}, force=True)
        self.assertEqual({"a": "3", "c": "4", "mine": "kept"}, self.content())

    def test_force_replaces_no_directory(self):
        self.write({"a": "1"})
        (self.path / "mine").mkdir()
        for name in ("b", "c"):
            (self.path / name).mkdir()
            error = self.assertRaises(
                HostConfigError, self.write, {"a": "3", "b": "4"}, force=True
            )
            self.assertIn(f"{name} is a directory: nothing was written", str(error))
            self.assertEqual("1", (self.path / "a").read_text())
            (self.path / name).rmdir()
        (self.path / "b").symlink_to("mine")
        self.write({"a": "3", "b": "4"}, force=True)
        self.assertEqual("4", (self.path / "b").read_text())

    def test_all_or_nothing(self):
        """The last text cannot be encoded; the first does not appear either."""
        self.assertRaises(UnicodeEncodeError, self.write, {"a": "1", "b": "\ud800"})
        self.assertEqual({}, self.content())

    def test_no_directory(self):
        self.path.parent.mkdir()
        self.path.write_text("a file")
        error = self.assertRaises(HostConfigError, self.write, {"a": "1"})
        self.assertIn("cannot write to", str(error))
