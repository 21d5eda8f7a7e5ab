# SPDX-License-Identifier: Apache-2.0
"""The JSON schema of the policy file, and what it says about a mistake."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, cast

import jsonschema

from nova_perfvm.exceptions import KeyPath, Problem
from nova_perfvm.policy import Policy
from nova_perfvm.policy.keys import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jsonschema.exceptions import ValidationError

_MOST_SHOWN = 200


SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "perfvm.yaml",
    **schema_of(Policy),
}


def form_problems(schema: dict[str, Any], document: object) -> list[Problem]:
    """List where a document is not as a schema has it, ordered by path."""
    errors = sorted(
        jsonschema.Draft202012Validator(schema).iter_errors(document),
        key=lambda error: list(map(str, error.path)),
    )
    # Infinity, for one, is neither whole nor in any range: one mistake.
    return list(dict.fromkeys(_in_words(errors)))


def _in_words(errors: Iterable[ValidationError]) -> Iterator[Problem]:
    """Say of each error what was found, and what was expected."""
    for error in errors:
        path = tuple(str(part) for part in error.absolute_path)
        schema = cast("dict[str, Any]", error.schema)
        found: Any = error.instance
        if error.validator == "additionalProperties":
            yield from _unknown_keys(schema, found, path)
        elif error.validator == "required":
            for key in schema["required"]:
                if key not in found:
                    expected = schema["properties"][key].get("description", "a value")
                    yield Problem((*path, key), f"missing; expected {expected}")
        elif "propertyNames" in error.schema_path:
            yield Problem((*path, str(found)), f"expected {schema['description']}")
        else:
            yield Problem(path, _value_message(schema, found, error))


def _unknown_keys(
    schema: dict[str, Any], found: Iterable[object], path: KeyPath
) -> Iterator[Problem]:
    known = list(schema["properties"])
    for key in found:
        if key in known:
            continue
        close = difflib.get_close_matches(str(key), known, n=1)
        hint = (
            f"did you mean {close[0]}?"
            if close
            else f"expected one of {', '.join(known)}"
        )
        yield Problem((*path, str(key)), f"unknown key; {hint}")


def _value_message(
    schema: dict[str, Any], found: object, error: ValidationError
) -> str:
    if error.validator == "uniqueItems":
        return f"found {_show(found)}, expected each value once"
    hint = ""
    if error.validator == "enum":
        choices = schema["enum"]
        close = difflib.get_close_matches(str(found), [str(v) for v in choices], n=1)
        # 1.0 instead of "1.0" is no typing error.
        hint = f" (did you mean {close[0]}?)" if close and close != [str(found)] else ""
        expected = schema.get(
            "description", f"one of {', '.join(_show(value) for value in choices)}"
        )
    else:
        expected = schema.get("description", error.message)
    return f"found {_show(found)}, expected {expected}{hint}"


def _show(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
