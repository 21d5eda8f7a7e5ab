# SPDX-License-Identifier: Apache-2.0
"""Tests that write files."""

import os
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

    def program(self, name, script):
        """Write a program that the shell runs; return a PATH with it before others."""
        programs = self.directory / "bin"
        programs.mkdir(exist_ok=True)
        path = programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return f"{programs}:{os.environ['PATH']}"
