# SPDX-License-Identifier: Apache-2.0
"""What the services log, kept off the terminal."""

from __future__ import annotations

import logging

import fixtures


class Quiet(fixtures.Fixture):
    """Keep what services log off the terminal.

    Nova's fixtures do so while they are set up; the services say more before
    and after that.
    """

    def _setUp(self) -> None:  # noqa: N802
        root = logging.getLogger()
        self.addCleanup(setattr, root, "handlers", root.handlers)
        root.handlers = [logging.NullHandler()]
