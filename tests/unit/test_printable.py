# SPDX-License-Identifier: Apache-2.0

import json
import pathlib
import unicodedata

import fixtures
import testtools
from hypothesis import given
from hypothesis import strategies as st
from oslo_config import cfg

from nova_perfvm.exceptions import PerfVMError, UnknownClassError, unknown_host
from nova_perfvm.printable import first_line, one_line, printable

# What terminals, browsers and XML parsers act on, or choke on.
HARMFUL = {"Cc", "Cf", "Cs", "Zl", "Zp"}
TEXTS = st.text(st.characters(exclude_categories=()))


def harmful(text):
    return [c for c in text if unicodedata.category(c) in HARMFUL]


class FirstLineTest(testtools.TestCase):
    def test_a_file_is_named_by_its_path(self):
        """Not by what oslo.config prints of it."""
        folder = self.useFixture(fixtures.TempDir())
        path = folder.join("it's.conf")
        pathlib.Path(path).write_text("[DEFAULT]\nmany = few\n")
        conf = cfg.ConfigOpts()
        conf.register_opt(cfg.IntOpt("many"))
        conf(["--config-file", path], default_config_files=[])
        error = self.assertRaises(ValueError, lambda: conf.many)
        self.assertIn(f"option many from {path} is not valid", first_line(error))


class NearestTest(testtools.TestCase):
    def test_hosts_by_number(self):
        hosts = [f"cmp{number:02}" for number in range(1, 40)]
        for name, nearest in (
            ("cmp1", "cmp01, cmp10, cmp11"),
            ("cmp001", "cmp01, cmp10, cmp11"),
            ("cmp7", "cmp07, cmp17, cmp27"),
            ("cmp100", "cmp10, cmp01"),
        ):
            said = unknown_host(name, hosts)
            self.assertIn(f"(the nearest: {nearest}", said, name)
        self.assertIn("nearest: c01.x, c1.y", unknown_host("c1.x", ["c1.y", "c01.x"]))


class PrintableTest(testtools.TestCase):
    def test_escapes(self):
        for text, expected in (
            ("", ""),
            ("Füße, 名前\u3000\xa0x", "Füße, 名前\u3000\xa0x"),
            ("\x1b[2J\x07", r"\u001b[2J\u0007"),
            ("a\n\tb", "a\n\tb"),
            ("a\r\nb", "a\\r\nb"),
            ("\x9b\x85\u2028", r"\u009b\u0085\u2028"),
            ("\u202eabc\u200b", r"\u202eabc\u200b"),
            ("\ud800\ufffe", r"\ud800\ufffe"),
            ("\U000e0041", r"\udb40\udc41"),
        ):
            self.assertEqual(expected, printable(text))
        self.assertEqual(r"a\nb\u001b", printable(one_line("a\nb\x1b")))

    @given(TEXTS)
    def test_nothing_harmful_is_left(self, text):
        self.assertEqual(set(), set(harmful(printable(text))) - set("\n\t"))
        self.assertEqual(1, len(one_line(text).split("\n")))
        # It is written as UTF-8 everywhere.
        printable(text).encode()

    @given(TEXTS)
    def test_json_says_the_same(self, text):
        document = json.dumps({"a": text}, ensure_ascii=False, indent=1)
        self.assertEqual(
            json.loads(json.dumps({"a": text})), json.loads(printable(document))
        )


class ErrorTest(testtools.TestCase):
    def test_errors_are_printable(self):
        self.assertEqual(r"image \u001b[2J", str(PerfVMError("image \x1b[2J")))
        self.assertIn(r"\u202e", str(UnknownClassError("x", ["\u202e"])))
