# SPDX-License-Identifier: Apache-2.0
"""Gather what preflight looks at, from the cloud and from copies of files."""

from __future__ import annotations

import configparser
from pathlib import Path
from typing import TYPE_CHECKING

from nova_perfvm.cloud import observe, placement_database
from nova_perfvm.diagnose.preflight import CloudView, FileOptions
from nova_perfvm.exceptions import PerfVMError

if TYPE_CHECKING:
    from nova_perfvm.cloud.api import API


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
    return CloudView(
        hosts=tuple(views),
        wanted=hosts,
        servers=observe.servers(api),
        aggregates=observe.aggregates(api),
        stray=observe.stray_providers(api, views),
        settings=settings,
        placement_settings=placement_settings,
        placement_database=database,
    )


def read_settings(path: str) -> FileOptions:
    """Read a file of options: {(group, option): value}, the last value if several.

    :raises SettingsError: when it cannot be read, or is no such file
    """
    parser = configparser.ConfigParser(
        strict=False, interpolation=None, default_section="", delimiters=("=",)
    )
    try:
        parser.read_string(Path(path).read_text(encoding="utf-8"), source=path)
    except OSError as exc:
        raise SettingsError(f"{path} cannot be read: {exc.strerror}") from exc
    except (UnicodeDecodeError, configparser.Error) as exc:
        first, *_ = str(exc).splitlines()
        raise SettingsError(f"{path} is no configuration file: {first}") from exc
    return {
        (group, option): value
        for group in parser.sections()
        for option, value in parser.items(group)
    }
