# SPDX-License-Identifier: Apache-2.0
"""The host's nova.conf, for its CPU sets."""

from __future__ import annotations

import configparser
from typing import Final, NamedTuple

from nova_perfvm import cpuset
from nova_perfvm.documents import textfile
from nova_perfvm.documents.document import KINDS, kind_of
from nova_perfvm.documents.mistakes import UnreadableFileError
from nova_perfvm.exceptions import CPUSetError, PerfVMError

PATH: Final = "/etc/nova/nova.conf"
# As oslo.config takes it.
_TRUE: Final = ("true", "1", "on", "yes")
_EXPECTED: Final = (
    "expected the host's nova.conf, with [DEFAULT] or [compute] in it, such as a copy "
    f"of {PATH}"
)
# The longest nova.conf, with all its comments, has half a megabyte.
_MOST_BYTES: Final = 4 * 1024 * 1024


class NovaConfError(PerfVMError):
    """A file that is no nova.conf of a host, or whose CPU sets mean nothing."""


class ConfiguredSets(NamedTuple):
    """Which CPUs Nova was told VMs own, and which they share.

    :ivar saves_power: what Nova does to dedicated CPUs that no VM owns: ``cpu_state``
        takes them offline, ``governor`` slows them down; empty for nothing
    """

    dedicated: frozenset[int]
    shared: frozenset[int]
    saves_power: str


def read(path: str) -> str:
    """Return the text of a nova.conf.

    :raises NovaConfError: when it is none
    """
    try:
        text = textfile.read(path, _MOST_BYTES)
    except UnreadableFileError as exc:
        raise NovaConfError(f"{exc}; {_EXPECTED}") from None
    if kind := kind_of(text):
        raise NovaConfError(f"{path}: this is {KINDS[kind].title}; {_EXPECTED}")
    try:
        parse(text)
    except NovaConfError as exc:
        raise NovaConfError(f"{path}: {exc}") from None
    return text


def parse(text: str) -> ConfiguredSets:
    """Return the CPU sets that a nova.conf has.

    :raises NovaConfError: when it is none, or they mean nothing
    """
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error as exc:
        reason = str(exc).partition("\n")[0]
        raise NovaConfError(f"no nova.conf: {reason}; {_EXPECTED}") from None
    if not parser.defaults() and not parser.has_section("compute"):
        raise NovaConfError(f"nothing of Nova in it; {_EXPECTED}")
    on = parser.get("libvirt", "cpu_power_management", fallback="") or ""
    strategy = "libvirt", "cpu_power_management_strategy"
    return ConfiguredSets(
        _set(parser, "cpu_dedicated_set"),
        _set(parser, "cpu_shared_set"),
        (parser.get(*strategy, fallback="") or "cpu_state").strip()
        if on.strip().lower() in _TRUE
        else "",
    )


def _set(parser: configparser.RawConfigParser, name: str) -> frozenset[int]:
    try:
        return cpuset.parse(parser.get("compute", name, fallback="") or "")
    except CPUSetError as exc:
        raise NovaConfError(f"[compute]{name}: {exc}") from None
