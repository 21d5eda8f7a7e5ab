# SPDX-License-Identifier: Apache-2.0
"""What the services log, kept for tests to read."""

import logging

import fixtures

# From which level on loggers are heard, with those below them.
_LEVELS = {
    "nova_perfvm": logging.DEBUG,
    "nova.filters": logging.INFO,
    "nova.scheduler": logging.INFO,
}


class Log(fixtures.Fixture):
    """Keep the records of some loggers."""

    def __init__(self):
        super().__init__()
        self._records = []

    def _setUp(self):  # noqa: N802
        handler = logging.Handler(logging.DEBUG)
        handler.emit = self._records.append
        for name, level in _LEVELS.items():
            heard = {"name": name, "level": level, "nuke_handlers": False}
            self.useFixture(fixtures.LogHandler(handler, **heard))

    def lines(self, containing="", level=logging.INFO):
        """Return the messages of at least this level that contain a text."""
        messages = (
            record.getMessage()
            for record in list(self._records)
            if record.levelno >= level
        )
        return [message for message in messages if containing in message]
