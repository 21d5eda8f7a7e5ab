# SPDX-License-Identifier: Apache-2.0

import configparser
import pathlib
import re

import testtools

ROOT = pathlib.Path(__file__).parents[2]


def configuration(name):
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string((ROOT / name).read_text())
    return parser


class PythonTest(testtools.TestCase):
    def test_pages_ask_for_the_version_that_installs(self):
        metadata = configuration("setup.cfg")["metadata"]
        version = metadata["python_requires"].removeprefix(">=")
        self.assertIn(f"Python :: {version}\n", metadata["classifier"])
        for page in ("README.rst", "CONTRIBUTING.rst"):
            named = re.findall(r"Python (\d\.\d+)", (ROOT / page).read_text())
            self.assertEqual({version}, set(named), page)


class ExtrasTest(testtools.TestCase):
    def test_tox_installs_what_make_does(self):
        tox = configuration("tox.ini")
        extras = {
            extra
            for section in ("testenv", "testenv:docs")
            for extra in tox[section]["extras"].split()
        }
        (installed,) = re.findall(
            r"--editable '\.\[([\w,]+)\]'", (ROOT / "Makefile").read_text()
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
        self.assertEqual(installed, listed)
