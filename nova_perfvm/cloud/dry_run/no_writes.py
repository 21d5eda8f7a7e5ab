# SPDX-License-Identifier: Apache-2.0
"""Refuse writes to databases and to Placement during a dry run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from nova import objects
from nova.scheduler.client.report import SchedulerReportClient
from sqlalchemy import event
from sqlalchemy.engine import Engine

# First words of SQL statements that read, or that set up a connection.
_READS: Final = frozenset({"BEGIN", "PRAGMA", "SELECT", "SET", "SHOW"})
# Methods of the report client that change Placement.
_WRITING_VERBS: Final = ("delete", "post", "put")


class WriteError(Exception):
    """A dry run has tried to write to a database or to Placement."""


@contextlib.contextmanager
def no_writes() -> Iterator[None]:
    """Make each write of this process fail, and skip two writes that Nova's readers do.

    When Nova reads rows in an old format, it stores them in the new one:
    ``RequestSpec._from_db_object``, ``InstanceNUMATopology.obj_from_db_obj``, and
    ``nova.compute.utils.heal_reqspec_is_bfv``.
    """

    def refuse(_connection: Any, _cursor: Any, statement: str, *_others: Any) -> None:
        if statement.lstrip("( \n").partition(" ")[0].upper() not in _READS:
            raise WriteError(statement)

    def keep(*_: Any, **__: Any) -> None:
        pass

    def refuse_call(_client: Any, url: str, *_: Any, **__: Any) -> None:
        raise WriteError(url)

    replaced: list[tuple[type, str, Any]] = [
        (objects.RequestSpec, "save", keep),
        (
            objects.InstanceNUMATopology,
            "_save_migrated_cpuset_to_instance_extra",
            keep,
        ),
        *((SchedulerReportClient, verb, refuse_call) for verb in _WRITING_VERBS),
    ]
    before = [(owner, name, owner.__dict__[name]) for owner, name, _ in replaced]
    event.listen(Engine, "before_cursor_execute", refuse)
    for owner, name, value in replaced:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
        event.remove(Engine, "before_cursor_execute", refuse)
