# SPDX-License-Identifier: Apache-2.0
"""What an archive without git has to ship beside modules."""

import configparser
import pathlib

import testtools

ROOT = pathlib.Path(__file__).parents[2]
LEFT_OUT = {"__pycache__"}


class PackageDataTest(testtools.TestCase):
    def test_every_file_that_is_no_module_is_of_a_glob(self):
        setup = configparser.ConfigParser()
        setup.read(ROOT / "setup.cfg")
        globbed = set()
        for line in setup["files"]["package_data"].strip().splitlines():
            package, _, patterns = line.partition(" = ")
            directory = ROOT / package.replace(".", "/")
            # As pbr takes them apart.
            for pattern in patterns.split():
                found = set(directory.glob(pattern))
                self.assertNotEqual(set(), found, f"{package}: {pattern}")
                globbed |= found
        others = {
            path
            for path in (ROOT / "nova_perfvm").rglob("*")
            if path.is_file()
            and path.suffix not in {".py", ".pyc"}
            and not LEFT_OUT & set(path.parts)
        }
        self.assertGreater(len(others), 5)
        self.assertEqual(set(), others - globbed)
