# SPDX-License-Identifier: Apache-2.0
"""How the tutorial is read; tests/sandbox/test_elastic.py follows it."""

import pathlib

import testtools

from tests import documented, shown
from tests.sandbox import tutorial

PAGE = """\
Words.

.. code-block:: console

   $ first --long \\
         --option
   printed 2026-01-02T03:04:05+00:00
   +---+
   $ second

More words::

   $ of another kind
"""
ID = "01234567-89ab-cdef-0123-456789abcdef"


class PageTest(testtools.TestCase):
    def test_steps_of_a_page(self):
        parts = tutorial.parse(PAGE)

        first, second = [part for part in parts if isinstance(part, tutorial.Step)]
        self.assertEqual("first --long \\\n      --option", first.text)
        shows = ("printed 2026-01-02T03:04:05+00:00", "+---+")
        self.assertEqual((shows, (("second",), ())), (first.output, second))
        self.assertEqual(PAGE, tutorial.render(parts))

    def test_the_page_is_read_whole(self):
        text = (tutorial.ROOT / tutorial.PAGE).read_text()
        self.assertEqual(text, tutorial.render(tutorial.parse(text)))
        self.assertGreater(len(tutorial.steps()), 20)
        seen = tutorial.comparable([f"a {ID} 2026-01-02T03:04:05+00:00  ", "12"])
        self.assertEqual("a ID TIME\n12", seen)

    def test_the_steps_are_the_commands_that_are_to_be_run(self):
        followed = [step.text for step in tutorial.steps() if step.followed]
        shown_ones = [
            command.text
            for command in shown.commands(tutorial.PAGE)
            if documented.runner(command)
        ]
        self.assertEqual(
            [text.split() for text in shown_ones],
            [text.replace("\\\n", "").split() for text in followed],
        )


class SessionTest(testtools.TestCase):
    """In a shell, without a sandbox."""

    def setUp(self):
        super().setUp()

        class Nothing:
            directory = pathlib.Path("/nowhere/state")

        Nothing.layout = Nothing.environment = Nothing
        self.session = self.enterContext(tutorial.Session(Nothing))

    def test_one_shell_runs_all(self):
        self.assertEqual((), self.session.run("word=one; cd /tmp"))
        self.assertEqual(("one /tmp",), self.session.run("echo $word $PWD"))
        self.assertEqual(("3",), self.session.run("(exit 3)\necho $?"))

    def test_what_a_terminal_shows(self):
        shown = self.session.run(
            "echo out; echo err >&2; printf '10%%\\r20%%\\r'; echo done; "
            "echo /nowhere/state/file; cat"
        )
        self.assertEqual(
            ("out", "err", "done", "~/.cache/nova_perfvm/sandbox/file"), shown
        )
