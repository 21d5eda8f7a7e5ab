# SPDX-License-Identifier: Apache-2.0

import json
import unicodedata

import testtools
from hypothesis import given
from hypothesis import strategies as st

from nova_perfvm.exceptions import PerfVMError, UnknownClassError
from nova_perfvm.printable import one_line, printable

# What terminals, browsers and XML parsers act on, or choke on.
HARMFUL = {"Cc", "Cf", "Cs", "Zl", "Zp"}
TEXTS = st.text(st.characters(exclude_categories=()))


def harmful(text):
    return [c for c in text if unicodedata.category(c) in HARMFUL]


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
            with self.subTest(expected):
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
