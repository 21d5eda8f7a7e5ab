# SPDX-License-Identifier: Apache-2.0
"""The record of a plan that is carried out: JSON that a later run goes on from."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Final

from nova_perfvm import filekinds, textfile
from nova_perfvm.changes.migrations.execution import STATES, Execution, MoveProgress
from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.exceptions import FileMistakesError, Problem
from nova_perfvm.policy.keys import mapping
from nova_perfvm.policy.schema import form_problems

SCHEMA_VERSION: Final = "1.0"

_TEXT: Final = {"type": "string", "description": "text"}
_COUNT: Final = {
    "type": "integer",
    "minimum": 0,
    "description": "a whole number, 0 or more",
}
_FLAG: Final = {"type": "boolean", "description": "true or false"}
_MOVE: Final = {
    **dict.fromkeys(("server", "name", "source", "target"), _TEXT),
    "live": _FLAG,
    **dict.fromkeys(("memory_mb", "vcpus"), _COUNT),
    "pinned": _FLAG,
    "class_name": {"type": ["string", "null"], "description": "a name, or null"},
}
_PROGRESS: Final = {
    "move": mapping(_MOVE, *_MOVE),
    "state": {"enum": list(STATES)},
    **dict.fromkeys(("status", "after", "note"), _TEXT),
}
_VERSION: Final = {"enum": [SCHEMA_VERSION], "description": f'"{SCHEMA_VERSION}"'}
_TOP: Final = {
    "schema_version": _VERSION,
    "policy_digest": _TEXT,
    "purpose": _TEXT,
    "any_zone": _FLAG,
    "moves": {
        "type": "array",
        "items": mapping(_PROGRESS, *_PROGRESS),
        "description": "a list of moves",
    },
}
_SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "record of a plan that is carried out",
    **mapping(_TOP, *_TOP),
}


class ExecutionRecordError(FileMistakesError):
    """A file that is no such record; ``problems`` holds the mistakes in it."""

    title = "{source} is no record of a plan that can be resumed:"
    most_shown = 20


def dumps(execution: Execution) -> str:
    """Return the JSON of an execution."""
    document = {"schema_version": SCHEMA_VERSION} | asdict(execution)
    return json.dumps(document, indent=1) + "\n"


def loads(text: str, source: str = "the record") -> Execution:
    """Return the execution that JSON describes.

    :param source: what to call the text in errors
    :raises ExecutionRecordError: with all mistakes
    """
    return filekinds.expecting(_loaded, text, source, filekinds.EXECUTION)


def read(path: str) -> Execution:
    """Read a record; see :func:`loads`.

    :raises UnreadableFileError: when it cannot be read
    """
    return loads(textfile.read(path), path)


def _loaded(text: str, source: str) -> Execution:
    try:
        document = json.loads(text)
    except ValueError as exc:
        raise ExecutionRecordError(source, [Problem((), f"no JSON: {exc}")]) from None
    except RecursionError:
        problem = Problem((), "nested too deeply")
        raise ExecutionRecordError(source, [problem]) from None
    problems = form_problems(_SCHEMA, document)
    if problems:
        raise ExecutionRecordError(source, problems)
    return Execution(
        policy_digest=document["policy_digest"],
        purpose=document["purpose"],
        moves=tuple(
            MoveProgress(**found | {"move": Move(**found["move"])})
            for found in document["moves"]
        ),
        any_zone=document["any_zone"],
    )
