# SPDX-License-Identifier: Apache-2.0
import configparser
import pathlib

import fixtures
import testtools
import yaml

from nova_perfvm.generate.hosts import HostConfigError, output, rendering
from tests.unit.generate.hosts.requests import configured, policy_of


class RenderingTest(testtools.TestCase):
    def test_files_read_as_data(self):
        config = configured()
        files = rendering.as_files(config)
        document = rendering.as_document(config)
        parser = configparser.ConfigParser(strict=False)
        parser.read_string(files["nova.conf"])
        expected = document["nova_conf"]
        defaults = dict(parser.defaults())
        self.assertEqual(expected.pop("DEFAULT"), defaults)
        for section, options in expected.items():
            # A section has the options of [DEFAULT], too, to this parser.
            self.assertEqual(options | defaults, dict(parser.items(section)))
        self.assertEqual(config.provider, yaml.safe_load(files["provider.yaml"]))
        self.assertEqual(files, document["files"])
        self.assertIn("# ==> provider.yaml\nmeta:\n", rendering.as_text(files))
        self.assertEqual(2, files["scheduler.conf"].count("\navailable_filters = "))
        self.assertIn(
            "\nallocation_conflict_retry_count = 1\n", files["placement.conf"]
        )
        without_slots = rendering.as_files(configured(mode="shared"))
        self.assertEqual(files.keys() - {"provider.yaml"}, without_slots.keys())

    def test_kernel_arguments_are_on_one_line(self):
        policy = policy_of(mem_page_size="1GB")
        text = rendering.nova_conf(configured("2x22x2", policy=policy, reserve=2))
        cores = "2-21,24-43,46-65,68-87"
        self.assertIn(
            f"\n#   kernel arguments: numa_balancing=disable nohz_full={cores} "
            f"rcu_nocbs={cores} isolcpus=managed_irq,{cores} hugepagesz=1G "
            "hugepages=0:246,1:246\n",
            text,
        )


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

    def test_nothing_is_overwritten_unasked(self):
        self.write({"a": "1", "x/y/d": "2", "x/e": "3"})
        (self.path / "mine").write_text("kept")
        before = {"a": "1", "x/y/d": "2", "x/e": "3", "mine": "kept"}
        for files in ({"a": "9", "b": "9"}, {"x/e": "9"}, {"c": "9"}):
            error = self.assertRaises(HostConfigError, self.write, files)
            self.assertIn("already has a, x/y/d, x/e: nothing was", str(error))
            self.assertIn("--force", str(error))
            self.assertEqual(before, self.content())
        self.write({"x/e": "4", "c": "5"}, force=True)
        self.assertEqual({"x/e": "4", "c": "5", "mine": "kept"}, self.content())

    def test_a_file_in_the_place_of_a_directory(self):
        self.write({"a": "1"})
        (self.path / "x").write_text("mine")
        error = self.assertRaises(HostConfigError, self.write, {"x/e": "2"}, force=True)
        self.assertIn("cannot write to", str(error))
        self.assertEqual({"a": "1", "x": "mine"}, self.content())
        self.path /= "a"
        error = self.assertRaises(HostConfigError, self.write, {"a": "1"})
        self.assertIn("cannot write to", str(error))

    def test_force_replaces_no_directory(self):
        self.write({"a": "1"})
        (self.path / "mine").mkdir()
        for name in ("b", "c"):
            (self.path / name).mkdir()
            error = self.assertRaises(
                HostConfigError, self.write, {"a": "3", "b": "4"}, force=True
            )
            self.assertIn(f"already has {name}: nothing was written", str(error))
            self.assertEqual("1", (self.path / "a").read_text())
            (self.path / name).rmdir()
        (self.path / "b").symlink_to("mine")
        self.write({"a": "3", "b": "4"}, force=True)
        self.assertEqual("4", (self.path / "b").read_text())

    def test_all_or_nothing(self):
        """The last text cannot be encoded; the first does not appear either."""
        self.assertRaises(UnicodeEncodeError, self.write, {"a": "1", "b": "\ud800"})
        self.assertEqual({}, self.content())
