# SPDX-License-Identifier: Apache-2.0
"""Cells of ``explain``: sentences in a table, fields in JSON."""

from __future__ import annotations

from nova_perfvm.diagnose import moves
from nova_perfvm.diagnose.explain.fixes import Fix
from nova_perfvm.diagnose.verdicts import HostVerdict
from nova_perfvm.diagnose.words import words
from nova_perfvm.osc.formats.both import Both


def reasons_cell(verdict: HostVerdict) -> Both:
    """Return why a host refuses a server; empty where the host takes the server."""
    name = verdict.view.name
    said = [
        {"code": reason.code, "host": name, "message": words(reason)}
        for reason in verdict.reasons
    ]
    return Both("\n".join(one["message"] for one in said), said)


def remedy_cell(fix: Fix | None) -> Both:
    """Return the smallest change after which a host takes the server."""
    if fix is None:
        return Both("", None)
    servers = [
        {
            "server": server.id,
            "name": server.name,
            "command": moves.migrate(server.id, server.status),
        }
        for server in fix.servers
    ]
    return Both(
        str(fix),
        {
            "host": fix.host,
            "steps": list(fix.steps),
            "servers": servers,
            "message": str(fix),
        },
    )
