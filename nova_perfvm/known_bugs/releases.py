# SPDX-License-Identifier: Apache-2.0
"""Releases of Nova, recognised by service versions and microversions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nova_perfvm.exceptions import PerfVMError

_NEWEST: Final = 999
_NUMBER: Final = re.compile(r"(\d{2})(?:\.(\d{1,3})(?:\.(\d{1,3}))?)?")
# Nova 27, of cycle 2023.1, was the first release with a year in its name.
_CYCLE: Final = re.compile(r"20(\d\d)\.([12])")

# {newest service version of a series: series}, by SERVICE_VERSION of
# nova/objects/service.py; and {minor microversion: series}, by _MAX_API_VERSION of
# nova/api/openstack/api_version_request.py.  The newer series is listed if two have
# the same version.
_BY_SERVICE: Final = {53: 22, 56: 23, 60: 24, 61: 25, 64: 26, 66: 28, 67: 30, 68: 31}
_BY_SERVICE.update({70: 32, 72: 33, 74: 34})
_BY_MICROVERSION: Final = {88: 23, 90: 25, 93: 26, 95: 28, 96: 30, 100: 32, 103: 33}
_BY_MICROVERSION.update({104: 34})
# Liberty, Nova 12, was the first series with such a number.
_OLDEST, _LAST_KNOWN = 12, max(_BY_SERVICE.values())


class ReleaseError(PerfVMError, ValueError):
    """A text that names no release of Nova."""


@dataclass(frozen=True, order=True)
class Release:
    """A release of Nova; a series such as 33 stands for its newest release."""

    major: int
    minor: int = _NEWEST
    patch: int = _NEWEST

    @classmethod
    def parse(cls, text: str) -> Release:
        """Read a release such as ``33.0.2``, a series (``33``) or a cycle (``2026.1``).

        A distributor's suffix behind the number is ignored.

        :raises ReleaseError: when the text names no release
        """
        if cycle := _CYCLE.fullmatch(text):
            year, half = map(int, cycle.groups())
            return cls(2 * (year - 23) + half + 26)
        found = _NUMBER.match(text)
        if found is None or text[found.end() : found.end() + 1].isdecimal():
            raise ReleaseError(
                f"found {text[:40]!r}, expected a release of Nova such as '33.0.2', a "
                "series such as '33', or its name such as '2026.1'"
            )
        return cls(*(int(part) for part in found.groups() if part is not None))

    def __str__(self) -> str:
        """Return the text that :meth:`parse` reads."""
        parts = (self.major, self.minor, self.patch)
        return ".".join(str(part) for part in parts if part != _NEWEST)

    def has_fix(self, fixed: Iterable[Release]) -> bool:
        """Return whether the release has a fix.

        :param fixed: the first fixed release of each series; every later series has the
            fix, too
        """
        for first in sorted(fixed):
            if self.major <= first.major:
                return self >= first
        return bool(fixed)


def known_release(text: str) -> Release:
    """Read a release like :meth:`Release.parse`, of a series that this module knows.

    :raises ReleaseError: when the text names no such release
    """
    found = Release.parse(text)
    if not _OLDEST <= found.major <= _LAST_KNOWN:
        raise ReleaseError(
            f"found {text!r}, expected a release of Nova from {_OLDEST} to "
            f"{_LAST_KNOWN}: bugs of others are unknown"
        )
    return found


def of_service(version: int | None) -> Release | None:
    """Return the release of a service; None if unknown.

    :param version: the service version in Nova's database
    """
    return _first(_BY_SERVICE, version)


def of_microversion(newest: str) -> Release | None:
    """Return the release of a nova-api; None if unknown.

    :param newest: nova-api's newest microversion; empty if unknown
    """
    _, _, minor = newest.partition(".")
    return _first(_BY_MICROVERSION, int(minor) if minor.isdecimal() else None)


def _first(table: Mapping[int, int], version: int | None) -> Release | None:
    """Return the oldest series that reached a version; None for newer versions."""
    if version is None:
        return None
    return next((Release(s) for v, s in sorted(table.items()) if v >= version), None)
