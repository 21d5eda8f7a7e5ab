# SPDX-License-Identifier: Apache-2.0
"""Read a configuration file of Nova or Placement, or a copy of one."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from oslo_config import cfg, iniparser

from nova_perfvm.documents import textfile
from nova_perfvm.documents.mistakes import UnreadableFileError
from nova_perfvm.exceptions import PerfVMError


class SettingsError(PerfVMError):
    """A configuration file that cannot be read."""


def read_settings(path: str) -> dict[tuple[str, str], str]:
    """Return the options of a configuration file: {(group, option): value}.

    An option that is set several times has its last value.

    :raises SettingsError: the file cannot be read, or has another format
    """
    try:
        return settings_of(textfile.read(path))
    except UnreadableFileError as exc:
        raise SettingsError(f"{path} cannot be read: {exc.reason}") from exc
    except SettingsError as exc:
        raise SettingsError(f"{path} is {exc}") from exc


def settings_of(text: str) -> dict[tuple[str, str], str]:
    """Return the options in the text of a configuration file: {(group, option): value}.

    :raises SettingsError: the text is not in the format of a configuration file
    """
    parser = _Options()
    try:
        parser.parse(text.split("\n"))
    except iniparser.ParseError as exc:
        raise SettingsError(f"no configuration file: {exc}") from exc
    return parser.found


def substituted(
    found: Mapping[tuple[str, str], str],
    key: tuple[str, str],
    known: Collection[tuple[str, str]],
) -> str:
    """Return an option's value with ``$option`` and ``${group.option}`` replaced.

    :param known: options that a value may refer to; an option that is not set is empty
    :raises SettingsError: a value refers to an unknown option, or to itself
    """

    class References(dict[str, str]):
        def __missing__(self, name: str) -> str:
            # As oslo_config.cfg.ConfigOpts.StrSubWrapper: the group, then DEFAULT.
            group, _, option = name.rpartition(".")
            for one in ((group or key[0], option), ("DEFAULT", name)):
                if one in known and one != key:
                    return substituted(found, one, {*known} - {key})
            raise SettingsError(f"no option of Nova answers the reference ${name}")

    value = found.get(key, "").replace(r"\$", "$$")
    return cfg.ConfigOpts.Template(value).safe_substitute(References())


class _Options(iniparser.BaseParser):
    """Collects options as oslo.config does; group names become lower case."""

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
