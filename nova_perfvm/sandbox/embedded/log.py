# SPDX-License-Identifier: Apache-2.0
"""What the services log, kept for tests and the demo to read."""

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


# From which level on loggers are heard, with those below them.
_LEVELS = {
    "nova_perfvm": logging.DEBUG,
    "nova.filters": logging.INFO,
    "nova.scheduler": logging.INFO,
}


class Log(fixtures.Fixture):
    """Keep the records of some loggers."""

    def __init__(self) -> None:
        super().__init__()
        self._records: list[logging.LogRecord] = []

    def _setUp(self) -> None:  # noqa: N802
        handler = logging.Handler(logging.DEBUG)
        handler.emit = self._records.append
        for name, level in _LEVELS.items():
            heard = {"name": name, "level": level, "nuke_handlers": False}
            self.useFixture(fixtures.LogHandler(handler, **heard))

    def lines(self, containing: str = "", level: int = logging.INFO) -> list[str]:
        """Return the messages of at least this level that contain a text."""
        messages = (
            record.getMessage()
            for record in list(self._records)
            if record.levelno >= level
        )
        return [message for message in messages if containing in message]
