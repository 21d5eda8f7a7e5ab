# SPDX-License-Identifier: Apache-2.0
"""Columns of ``explain``: sentences in a table, fields in JSON."""

from __future__ import annotations

from typing import Any

from cliff.columns import FormattableColumn

from nova_perfvm.diagnose import moves
from nova_perfvm.diagnose.explain.fixes import Fix
from nova_perfvm.diagnose.verdicts import HostVerdict
from nova_perfvm.diagnose.words import words


class Reasons(FormattableColumn[Any]):
    """Why a host refuses a server."""

    def human_readable(self) -> str:
        return "\n".join(map(words, self._value.reasons))

    def machine_readable(self) -> list[dict[str, str]]:
        """Return the fields of each reason; none where the host takes the server."""
        found: HostVerdict = self._value
        return [
            {"code": reason.code, "host": found.view.name, "message": words(reason)}
            for reason in found.reasons
        ]


class Remedy(FormattableColumn[Any]):
    """The smallest change after which a host takes the server."""

    def human_readable(self) -> str:
        return str(self._value or "")

    def machine_readable(self) -> dict[str, Any] | None:
        """Return the fields of the fix; None where no fix is known."""
        fix: Fix | None = self._value
        if fix is None:
            return None
        return {
            "host": fix.host,
            "steps": list(fix.steps),
            "servers": [
                {
                    "server": server.id,
                    "name": server.name,
                    "command": moves.migrate(server.id, server.status),
                }
                for server in fix.servers
            ],
            "message": str(fix),
        }
