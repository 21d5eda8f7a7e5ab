# SPDX-License-Identifier: Apache-2.0
"""Raw facts of a machine: unparsed texts of files and commands.

Raw texts can be judged again by later rules.  Paths are paths of the collected
machine.
"""

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal, NamedTuple, TypeVar

from nova_perfvm.documents.keys import REQUIRED, Expected, Time
from nova_perfvm.exceptions import PerfVMError

T = TypeVar("T")
Kind = Literal["host", "guest"]
_Seconds = Annotated[float, Expected("a number of seconds", lambda s: s >= 0)]
# Python's int() refuses numbers of more than 4300 digits, which a guest may make up.
_LONG = re.compile(r"(?<!\d)\d{1000}")
_Text = Annotated[
    str,
    Expected("text without numbers of 1000 digits", lambda t: not _LONG.search(t)),
]
_Path = Annotated[str, Expected("an absolute path", lambda path: path.startswith("/"))]


class NotReadError(PerfVMError):
    """A file or command (``place``) was not collected, for a ``reason``."""

    def __init__(self, place: str, reason: str) -> None:
        """Keep place and reason."""
        self.place = place
        self.reason = reason
        super().__init__(f"{place}: {reason}")


def values(text: str, separator: str = ":") -> dict[str, str]:
    """Return {key: value} of lines such as ``Combined:  20``."""
    pairs = (line.partition(separator) for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


class CommandOutput(NamedTuple):
    """Exit code and output of a command."""

    exit_code: int
    stdout: _Text
    stderr: str = ""


@dataclass(frozen=True)
class Collected:
    """Files, links and command outputs of one machine.

    :ivar kind: host or guest
    :ivar hostname: name of the machine
    :ivar taken_at: time of the first look: UTC, ISO 8601
    :ivar interval_s: seconds between the two looks; 0 after a single look
    :ivar files: {path: text} of the first look
    :ivar later: {path: text} of the second look, for files with counters
    :ivar links: {path: target of the symbolic link}
    :ivar commands: {command line: output}, such as ``ethtool -l eth0``
    :ivar unread: {path or command line: reason}
    """

    kind: Kind
    hostname: str
    taken_at: Time
    interval_s: _Seconds = field(default=0.0, metadata=REQUIRED)
    files: Mapping[_Path, _Text] = field(default_factory=dict, metadata=REQUIRED)
    later: Mapping[_Path, _Text] = field(default_factory=dict, metadata=REQUIRED)
    links: Mapping[_Path, str] = field(default_factory=dict, metadata=REQUIRED)
    commands: Mapping[str, CommandOutput] = field(
        default_factory=dict, metadata=REQUIRED
    )
    unread: Mapping[str, str] = field(default_factory=dict, metadata=REQUIRED)

    @property
    def time(self) -> datetime:
        """The time of the first look."""
        return datetime.fromisoformat(self.taken_at)

    def text(self, path: str) -> str:
        """Return the text of a file at the first look.

        :raises NotReadError: when the file was not read
        """
        return self._found(self.files, path)

    def looks(self, path: str) -> tuple[str, str]:
        """Return the texts of a file at the first and at the second look.

        :raises NotReadError: when the file was not read twice
        """
        first = self.text(path)
        if path not in self.later:
            raise NotReadError(path, self.unread.get(path, "it was read only once"))
        return first, self.later[path]

    def output(self, command: str) -> str:
        """Return the standard output of a command.

        :raises NotReadError: when the command was not run, or failed
        """
        done = self._found(self.commands, command)
        if done.exit_code:
            first, *_ = done.stderr.strip().splitlines() or ["nothing on stderr"]
            raise NotReadError(command, f"exit code {done.exit_code}: {first}")
        return done.stdout

    def matching(self, pattern: str) -> dict[str, str]:
        """Return {path: text} of files that match a shell pattern, sorted.

        ``*`` matches slashes, too.
        """
        found = fnmatch.filter(self.files, pattern)
        return {path: self.files[path] for path in sorted(found)}

    def _found(self, among: Mapping[str, T], place: str) -> T:
        if place not in among:
            raise NotReadError(place, self.unread.get(place, "it was not collected"))
        return among[place]
