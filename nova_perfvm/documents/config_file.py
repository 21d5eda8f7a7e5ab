# SPDX-License-Identifier: Apache-2.0
"""Read a configuration file of Nova or Placement, or a copy of one."""

from __future__ import annotations

from oslo_config import iniparser

from nova_perfvm.documents import textfile
from nova_perfvm.documents.mistakes import UnreadableFileError
from nova_perfvm.exceptions import PerfVMError


class SettingsError(PerfVMError):
    """A configuration file that cannot be read."""


def read_settings(path: str) -> dict[tuple[str, str], str]:
    """Read a file of options: {(group, option): value}, the last value if several.

    :raises SettingsError: when it cannot be read, or is no such file
    """
    try:
        return settings_of(textfile.read(path))
    except UnreadableFileError as exc:
        raise SettingsError(f"{path} cannot be read: {exc.reason}") from exc
    except SettingsError as exc:
        raise SettingsError(f"{path} is {exc}") from exc


def settings_of(text: str) -> dict[tuple[str, str], str]:
    """Return the options of a text: {(group, option): value}.

    :raises SettingsError: when it is none of options
    """
    parser = _Options()
    try:
        parser.parse(text.split("\n"))
    except iniparser.ParseError as exc:
        raise SettingsError(f"no configuration file: {exc}") from exc
    return parser.found


class _Options(iniparser.BaseParser):
    """Keeps options as oslo.config does; names of groups regardless of case."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[tuple[str, str], str] = {}
        self._group = ""

    def new_section(self, section: str) -> None:
        self._group = section if section == "DEFAULT" else section.lower()

    def assignment(self, key: str, value: list[str]) -> None:
        if not self._group:
            raise self.parse_exc("Section must be started before", self.lineno, key)
        self.found[self._group, key] = "\n".join(value)
