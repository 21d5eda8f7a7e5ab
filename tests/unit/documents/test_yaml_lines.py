# SPDX-License-Identifier: Apache-2.0
"""YAML that is made to hurt whoever reads it, or does so by accident."""

import testtools

from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.documents.yaml_lines import YAMLText

# A text, and what is said of it; where a line is told, it is that of the fault.
REFUSED = (
    ("a: &a [1]\nb: [*a, *a]\n", "line 2: (top level): column 5: an alias"),
    ("a: &x [*x]", "line 1: (top level): column 8: an alias"),
    ("a:\n  <<: {x: 1}", "line 2: (top level): column 3: a key that is no"),
    ("[" * 100_000, "nested too deeply"),
    ("a: " + "{b: " * 2000 + "}" * 2000, "nested too deeply"),
    ("- " * 10_000, "nested too deeply"),
    *(
        (f"a: {character}x", f"not YAML: unacceptable character #x{ord(character):04x}")
        for character in "\0\x1b\x7f\ud800\ufffe"
    ),
    ('a: "\\U0011ffff"', "not YAML: "),
    ("\na: 2026-99-99", "line 2: (top level): column 4: unreadable value"),
    *(
        (f"a: {value}", "line 1: (top level): column 4: unreadable value: ")
        for value in (
            *("1" * 5000, f"0x{'f' * 5000}", "!!timestamp x", '!!int ""'),
            *("!!bool x", '"\\ud800"'),
        )
    ),
)


class YAMLTextTest(testtools.TestCase):
    def test_refused(self):
        for text, words in REFUSED:
            source = YAMLText(text)
            self.assertIsNone(source.data)
            (mistake,) = source.mistakes
            self.assertIn(words, str(mistake), text[:80])
            self.assertEqual(1, len(str(mistake).splitlines()))

    def test_a_key_that_is_deeper_than_those_above(self):
        (mistake,) = YAMLText("a:\n   b:\n     c: 1\n\n    d:\n     e: 2\n").mistakes
        self.assertEqual(
            "line 5: (top level): not YAML at column 5: indented more than the keys "
            "from line 2, column 4, on: align them, with spaces",
            str(mistake),
        )

    def test_lines(self):
        source = YAMLText("a:\n- 1\n-\n  b: x\nc: {}\n")
        self.assertEqual({"a": [1, {"b": "x"}], "c": {}}, source.data)
        paths = [("c", "none"), ("a", "1", "b"), ("a", "0"), ("a",), ("d",)]
        placed = source.in_order(Mistake(path, "") for path in paths)
        self.assertEqual([None, 1, 2, 4, 5], [mistake.line for mistake in placed])
