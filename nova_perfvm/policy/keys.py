# SPDX-License-Identifier: Apache-2.0
"""Dataclasses that are the keys of a file.

A key is stated once, as a field: the field's type says what the key takes, and
what Python's types cannot say stands beside it, as words of JSON schema in an
``Annotated``.  The schema, the values read and the document written follow::

    IOPS = Annotated[int, count(1, 2147483647, "I/O operations per second")]

    @dataclass(frozen=True)
    class Disk:
        read_iops: IOPS | None = None

cattrs and pydantic would name the path of each mistake as well, which
:mod:`nova_perfvm.policy.source` makes a line, but both need hooks of ours for
mappings of names, cattrs states no schema and takes the text ``"20"`` for a number,
and pydantic's compiled code would come into nova-scheduler, which has jsonschema
already.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from typing import Annotated, Any, Final

# What a field's ``metadata`` may say.
# The name under which its mapping stands, and no key of that mapping.
NAME: Final = {"name": True}
# Not written at its default.
LEFT_OUT: Final = {"left_out": True}


class Form(enum.Enum):
    """How several values stand in a file, where it is not as a list."""

    BY_NAME = "a mapping of their names to the rest of them"
    ONE_OR_MORE = "a list, or the only one without it"


@dataclasses.dataclass(frozen=True)
class Words:
    """Words of JSON schema, as pairs."""

    pairs: tuple[tuple[str, Any], ...]


def says(**words: Any) -> Words:
    """Return words of JSON schema, to stand in an ``Annotated``."""
    return Words(tuple(words.items()))


def count(minimum: int, maximum: int, unit: str) -> Words:
    """Return what to say of an ``int`` that counts something."""
    described = f"a whole number of {unit} from {minimum} to {maximum}"
    return says(minimum=minimum, maximum=maximum, description=described)


def mapping(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """Return the schema of a mapping that has no other keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        "description": f"a mapping with the keys {', '.join(properties)}",
    }


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of what :func:`read` takes for a type."""
    kind, form, words = _taken_apart(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    found: dict[str, Any]
    if form is Form.BY_NAME:
        item = schema_of(arguments[0])
        found = {"type": "object", "additionalProperties": item}
    elif origin is tuple:
        item = schema_of(arguments[0])
        found = {"type": "array", "items": item}
        if form is Form.ONE_OR_MORE:
            found = {"anyOf": [item, found | {"minItems": 1}]}
    elif origin in {typing.Union, types.UnionType}:
        item = schema_of(arguments[0])
        # A mapping that is not set is left out.
        found = item if item.get("type") == "object" else _or_null(item)
    elif origin is typing.Literal:
        found = {"enum": list(arguments)}
    elif kind is bool:
        found = {"type": "boolean", "description": "true or false"}
    elif kind is int:
        found = {"type": "integer"}
    elif kind is str or _is_text(kind):
        found = {"type": "string"}
    else:
        keys = _keys(kind)
        missing = dataclasses.MISSING
        found = mapping(
            {key: schema_of(_hints(kind)[f.name]) for key, f in keys.items()},
            *(k for k, f in keys.items() if missing is f.default is f.default_factory),
        )
    return found | words


def read(kind: Any, value: Any) -> Any:
    """Return a value of a type from what stands in a file.

    :param value: what fulfils the type's schema
    """
    kind, form, _ = _taken_apart(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    found = value
    if value is None:
        pass
    elif form is Form.BY_NAME:
        found = tuple(
            read(arguments[0], keys | {"name": name}) for name, keys in value.items()
        )
    elif origin is tuple:
        items = value if isinstance(value, list) else [value]
        found = tuple(read(arguments[0], item) for item in items)
    elif origin in {typing.Union, types.UnionType}:
        found = read(arguments[0], value)
    elif _is_text(kind):
        found = kind.parse(value)
    elif kind is int:
        # JSON schema takes 20.0 for an integer.
        found = int(value)
    elif dataclasses.is_dataclass(kind):
        made: Any = kind
        fields = {
            field.name: read(_hints(made)[field.name], value[key])
            for key, field in _keys(made, named=True).items()
            if key in value
        }
        found = made(**fields)
    return found


def written(kind: Any, value: Any) -> Any:
    """Return what :func:`read` makes a value of, every key written out."""
    kind, form, _ = _taken_apart(kind)
    arguments = typing.get_args(kind)
    found = value
    if value is None:
        pass
    elif form is Form.BY_NAME:
        found = {item.name: written(arguments[0], item) for item in value}
    elif isinstance(value, tuple):
        found = [written(arguments[0], item) for item in value]
        if form is Form.ONE_OR_MORE and len(found) == 1:
            (found,) = found
    elif _is_text(type(value)):
        found = str(value)
    elif dataclasses.is_dataclass(value):
        of: Any = type(value)
        found = {
            key: written(_hints(of)[field.name], getattr(value, field.name))
            for key, field in _keys(of).items()
            if not field.metadata.get("left_out")
            or getattr(value, field.name) != field.default
        }
    return found


def _taken_apart(kind: Any) -> tuple[Any, Form | None, dict[str, Any]]:
    """Return the type proper, how several of it stand, and words of the schema."""
    if typing.get_origin(kind) is not Annotated:
        return kind, None, {}
    kind, *notes = typing.get_args(kind)
    forms = [note for note in notes if isinstance(note, Form)]
    words = {k: v for n in notes if isinstance(n, Words) for k, v in n.pairs}
    return kind, forms[0] if forms else None, words


def _is_text(kind: Any) -> bool:
    """Return whether a type stands in a file as the text that it parses."""
    return hasattr(kind, "parse")


def _keys(kind: Any, *, named: bool = False) -> dict[str, dataclasses.Field[Any]]:
    """Return the fields by key, with that of the name if asked for."""
    return {
        field.metadata.get("key", field.name): field
        for field in dataclasses.fields(kind)
        if named or not field.metadata.get("name")
    }


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Let null, which means "not set", stand for any value."""
    if "enum" in schema:
        return schema | {"enum": [*schema["enum"], None]}
    return schema | {"type": [schema["type"], "null"]}


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)
