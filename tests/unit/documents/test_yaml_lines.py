# SPDX-License-Identifier: Apache-2.0
"""YAML that is made to hurt whoever reads it, or does so by accident."""

import testtools

from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.documents.yaml_lines import YAMLText


def bomb(levels, width, first="[1, 1, 1]", more="[{}]"):
    """Return a text in which each value stands for several of the one before."""
    lines = [f"a0: &a0 {first}"]
    for level in range(1, levels + 1):
        aliases = ", ".join([f"*a{level - 1}"] * width)
        lines.append(f"a{level}: &a{level} {more.format(aliases)}")
    return "\n".join(lines)


class YAMLTextTest(testtools.TestCase):
    def found(self, text):
        """Return the problems, which stand instead of the data."""
        source = YAMLText(text)
        self.assertIsNone(source.data)
        return [str(problem) for problem in source.mistakes]

    def test_aliases_that_stand_for_billions(self):
        for text in (
            bomb(30, 9),
            bomb(30, 9, "{x: 1}", "{{x: [{}]}}"),
            # Merged mappings are lists of pairs that grow as fast.
            bomb(60, 3, "{x: 1}", "{{<<: [{}]}}"),
            bomb(60, 3, "{x: 1}", "{{y: {{<<: [{}]}}}}"),
        ):
            (problem,) = self.found(text)
            self.assertIn("aliases repeat more than 1000 values: write out", problem)

    def test_a_few_aliases_are_fine(self):
        source = YAMLText(bomb(3, 3))
        self.assertEqual([], source.mistakes)
        self.assertEqual(3, len(source.data["a3"]))

    def test_merged_mappings(self):
        source = YAMLText("a: &a {x: 1, y: 2}\nb:\n  y: 3\n  <<: *a\n")
        self.assertEqual([], source.mistakes)
        self.assertEqual({"x": 1, "y": 3}, source.data["b"])
        placed = source.in_order([Mistake(("b", key), "") for key in "yxz"])
        self.assertEqual([1, 2, 3], [mistake.line for mistake in placed])

    def test_depth(self):
        for text in (
            "a: " + "[" * 40 + "]" * 40,
            "[" * 100_000,
            "a: " + "{b: " * 2000 + "}" * 2000,
            "- " * 10_000,
            # Aliases that contain themselves.
            "a: &x [*x]",
            "a: &x {b: {c: *x}}",
            "a: &x {<<: *x}",
        ):
            (problem,) = self.found(text)
            self.assertIn("nested too deeply", problem)
            self.assertIn("line 1", problem)

    def test_characters_that_yaml_forbids(self):
        for character in "\0\x1b\x7f\ud800\ufffe":
            (problem,) = self.found(f"a: 1\nb: {character}x\n")
            self.assertEqual(
                "line 2: (top level): no YAML at column 4: the character "
                f"U+{ord(character):04X} cannot be printed: remove it",
                problem,
            )

    def test_every_unreadable_value_with_its_line(self):
        text = (
            "a: 2026-99-99\n"
            f"b: {'1' * 5000}\n"
            "c:\n"
            "  - 0\n"
            f"  - 0x{'f' * 5000}\n"
            "d: !!timestamp x\n"
            'e: !!int ""\n'
            "f: !!bool x\n"
            'g: "\\ud800"\n'
        )
        *found, half = self.found(text)
        self.assertIn("line 9: g: unreadable value: 'utf-8' codec can't encode", half)
        self.assertEqual(
            [
                "line 1: a: unreadable value: month must be in 1..12",
                "line 2: b: unreadable value: too long for int",
                "line 5: c.1: unreadable value: too long for int",
                "line 6: d: unreadable value: no timestamp",
                "line 7: e: unreadable value: no int",
                "line 8: f: unreadable value: no bool",
            ],
            found,
        )
