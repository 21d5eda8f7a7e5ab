# SPDX-License-Identifier: Apache-2.0
"""Gather what preflight looks at, from the cloud and from copies of files."""

from __future__ import annotations

from oslo_config import iniparser

from nova_perfvm import textfile
from nova_perfvm.cloud import observe, placement_database, snapshot
from nova_perfvm.cloud.api import API
from nova_perfvm.diagnose.preflight import CloudView
from nova_perfvm.exceptions import PerfVMError, UnreadableFileError
from nova_perfvm.generate.options import FileOptions


class SettingsError(PerfVMError):
    """A configuration file that cannot be read."""


def view_cloud(
    api: API,
    hosts: frozenset[str] = frozenset(),
    nova_conf: str | None = None,
    placement_conf: str | None = None,
) -> CloudView:
    """Look at a whole cloud.

    :param hosts: those that are to be enrolled
    :param nova_conf: path of nova-scheduler's configuration file
    :param placement_conf: path of that of Placement
    :raises SettingsError: when a file cannot be read
    :raises CloudError: when a request fails
    """
    settings = read_settings(nova_conf) if nova_conf else None
    placement_settings = read_settings(placement_conf) if placement_conf else None
    database = placement_database.read(placement_conf) if placement_conf else None
    views = observe.view_hosts(api, hosts)
    seen = snapshot.take(api)
    return CloudView(
        hosts=tuple(views),
        wanted=hosts,
        snapshot=seen,
        servers=seen.servers,
        aggregates=seen.aggregates,
        stray=observe.stray_providers(api, views),
        settings=settings,
        placement_settings=placement_settings,
        placement_database=database,
    )


def read_settings(path: str) -> FileOptions:
    """Read a file of options: {(group, option): value}, the last value if several.

    :raises SettingsError: when it cannot be read, or is no such file
    """
    parser = _Options()
    try:
        parser.parse(textfile.read(path).split("\n"))
    except UnreadableFileError as exc:
        raise SettingsError(f"{path} cannot be read: {exc.reason}") from exc
    except iniparser.ParseError as exc:
        raise SettingsError(f"{path} is no configuration file: {exc}") from exc
    return parser.found


class _Options(iniparser.BaseParser):
    """Keeps options as oslo.config does; names of groups regardless of case."""

    def __init__(self) -> None:
        super().__init__()
        self.found: FileOptions = {}
        self._group = ""

    def new_section(self, section: str) -> None:
        self._group = section if section == "DEFAULT" else section.lower()

    def assignment(self, key: str, value: list[str]) -> None:
        if not self._group:
            raise self.parse_exc("Section must be started before", self.lineno, key)
        self.found[self._group, key] = "\n".join(value)
