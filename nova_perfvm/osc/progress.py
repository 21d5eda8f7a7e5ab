# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""How far long work is, for whoever waits at a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from types import TracebackType

_ERASE = "\r\x1b[K"
_MAX_WIDTH = 78


class Progress:
    """One line that is written anew at each step, and erased at the end.

    :param stream: where to; nothing is written unless it is a terminal
    """

    def __init__(self, stream: TextIO) -> None:
        """Write nothing yet."""
        self._stream = stream if stream.isatty() else None
        self._steps = 0

    def __enter__(self) -> Self:
        """Give the progress itself."""
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Erase the line."""
        self._write("")

    def step(self, text: object, total: int | None = None) -> None:
        """Say what is being done now.

        :param total: how many steps there are, if that is known
        """
        self._steps += 1
        count = f"{self._steps}/{total}" if total else f"{self._steps}"
        self._write(f"[{count}] {text}"[:_MAX_WIDTH])

    def _write(self, text: str) -> None:
        if self._stream:
            self._stream.write(_ERASE + text)
            self._stream.flush()
