# SPDX-License-Identifier: Apache-2.0
"""What explain says: words in a table, fields for machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from cliff.columns import FormattableColumn

from nova_perfvm.diagnose import moves
from nova_perfvm.diagnose.explain import words
from nova_perfvm.diagnose.explain.fixes import Fix
from nova_perfvm.facts import Reason
from nova_perfvm.facts.snapshot import Server

# The first of these that a reason has is what was asked for, or was there.
_EXPECTED: Final = ("expected", "need", "amount", "max", "trait", "missing")
_OBSERVED: Final = ("found", "free", "free_mb", "count", "now", "provider", "children")


class Said(NamedTuple):
    """Reasons that a host refuses, and their words for people.

    :ivar names: of servers, by their IDs
    """

    host: str
    reasons: Sequence[Reason]
    text: str
    names: Mapping[str, str]


class Reasons(FormattableColumn[Any]):
    """Reasons of one host."""

    def human_readable(self) -> str:
        """Return their words, one a line."""
        said: Said = self._value
        return said.text

    def machine_readable(self) -> list[dict[str, Any]]:
        """Return the fields of each; none where the host takes the server."""
        return [
            {
                "code": reason.code,
                "host": self._value.host,
                "cell": _plain(reason.data.get("cell")),
                "expected": _first(reason.data, _EXPECTED),
                "observed": _observed(reason.data),
                "message": words(reason, self._value.names),
            }
            for reason in self._value.reasons
        ]


class Remedy(FormattableColumn[Any]):
    """The smallest change after which a host takes the server."""

    def human_readable(self) -> str:
        """Return it as one sentence."""
        return str(self._value) if self._value else ""

    def machine_readable(self) -> dict[str, Any] | None:
        """Return its fields; None where none is known."""
        fix: Fix | None = self._value
        if fix is None:
            return None
        return {
            "host": fix.host,
            "steps": list(fix.steps),
            "frees": fix.frees,
            "servers": [_leaves(server) for server in fix.servers],
            "message": str(fix),
        }


def _leaves(server: Server) -> dict[str, str]:
    action, _, _ = moves.describe([server]).rpartition(f" {server}")
    return {
        "server": server.id,
        "name": server.name,
        "action": action,
        "command": moves.migrate(server.id, server.status),
    }


def _observed(data: Mapping[str, Any]) -> Any:
    if "capacity" in data and "used" in data:
        return max(0, data["capacity"] - data["used"])
    return _first(data, _OBSERVED)


def _first(data: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((_plain(data[key]) for key in keys if key in data), None)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(map(_plain, value))
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | None) else str(value)
