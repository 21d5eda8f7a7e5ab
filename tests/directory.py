# SPDX-License-Identifier: Apache-2.0
"""Tests that write files."""

import pathlib

import fixtures
import testtools


class DirectoryCase(testtools.TestCase):
    """A test with a directory of its own, which ends with it.

    :ivar directory: its path
    """

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
