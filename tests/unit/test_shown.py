# SPDX-License-Identifier: Apache-2.0
"""How commands are read from pages."""

import pathlib

import fixtures
import testtools

from tests import shown
from tests.shown import Shown

PAGE = """\
1. In an item::

    first --long \\
        --option

   not a command, but the item's text. Settings::

       second    # a comment

.. code-block:: console

   $ third
   printed
     indented
   # fourth

.. code-block:: sh

   fifth

.. code-block:: ini

   [no] command
"""


class CommandsTest(testtools.TestCase):
    def commands(self, text):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "page.rst")
        path.write_text(text)
        return str(path), shown.commands(path)

    def test_commands_with_their_places_and_outputs(self):
        path, found = self.commands(PAGE)
        self.assertEqual(
            [
                (f"{path}:3", "first --long --option", ""),
                (f"{path}:8", "second    # a comment", ""),
                (f"{path}:12", "third", "printed\n  indented"),
                (f"{path}:15", "fourth", ""),
                (f"{path}:19", "fifth", ""),
            ],
            found,
        )
        self.assertEqual({path}, {command.page for command in found})


class PrintedTest(testtools.TestCase):
    def test_dots_stand_for_any_lines(self):
        command = Shown("page:1", "command", "first\n...\nlast (1.5)")
        self.assertTrue(command.is_printed("first\nsecond\nthird\nlast (1.5)\n"))
        self.assertFalse(command.is_printed("first\nsecond\nlast (175)\n"))
        self.assertFalse(command.is_printed("second\nlast (1.5)\n"))
