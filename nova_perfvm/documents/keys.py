# SPDX-License-Identifier: Apache-2.0
"""Map dataclasses to the keys of a file.

A field of a dataclass declares a key: the field's type says which values the key takes,
and an ``Annotated`` adds the limits that Python's types cannot express.  Reader, writer
and messages follow from the field::

    IOPS = Annotated[int, count(1, 2147483647, "I/O operations per second")]

    @dataclass(frozen=True)
    class Disk:
        read_iops: IOPS | None = None

        def mistakes(self) -> Iterator[Mistake]:
            ...  # contradictions between keys whose values are valid each

No library fits: pydantic brings compiled code into nova-scheduler, cattrs takes the
text ``"20"`` for a number, and JSON schema needs a minute for a large snapshot.
"""

from __future__ import annotations

import collections.abc
import contextlib
import dataclasses
import datetime as dt
import difflib
import enum
import functools
import json
import re
import sys
import types
import typing
from collections.abc import Callable, Hashable
from dataclasses import MISSING
from typing import Annotated, Any, Final, NamedTuple

from nova_perfvm import cpuset
from nova_perfvm.documents.mistakes import MOST, KeyPath, Mistake

# Values of a field's ``metadata``.
# The field is the key that the object's mapping has in the file (see Form.BY_NAME).
NAME: Final = {"name": True}
# The writer leaves out the field at its default, even if it writes whole documents.
LEFT_OUT: Final = {"left_out": True}
# A file must have the key, though the field has a default in code.
REQUIRED: Final = {"required": True}

_MOST_SHOWN: Final = 100
# Longest number as a mapping's key: int() fails for texts of thousands of digits.
_MOST_DIGITS: Final = 20


@dataclasses.dataclass(frozen=True)
class Expected:
    """A condition on a field's value beside its type, for use in an ``Annotated``.

    :ivar words: the expected value for messages, such as ``a path``
    :ivar holds: returns whether a value meets the condition
    """

    words: str
    holds: Callable[[Any], bool] = lambda _: True


def count(minimum: int, maximum: int, unit: str) -> Expected:
    """Return the condition that an ``int`` lies between two limits, both included."""
    words = f"a whole number of {unit} from {minimum} to {maximum}"
    return Expected(words, lambda number: minimum <= number <= maximum)


def matching(pattern: str, words: str) -> Expected:
    """Return the condition that the whole of a ``str`` matches a pattern."""
    compiled = re.compile(pattern)
    return Expected(words, lambda text: compiled.fullmatch(text) is not None)


def some(words: str) -> Expected:
    """Return the condition that a text or collection is not empty."""
    return Expected(words, bool)


def _is_time(text: str) -> bool:
    try:
        return dt.datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


Time = Annotated[
    str,
    Expected("a time with its offset such as '2026-01-31T12:00:00+00:00'", _is_time),
]
EACH_ONCE: Final = Expected("each value once", lambda v: len(set(v)) == len(v))


class _Key(NamedTuple):
    """One key of a file, made from a field of a dataclass or NamedTuple.

    :ivar name: the key in the file
    :ivar field: the field's name in Python
    :ivar kind: the field's type
    """

    name: str
    field: str
    kind: Any
    default: Any
    is_name: bool = False
    left_out: bool = False
    required: bool = False


def read_value(kind: Any, value: Any) -> tuple[Any, list[Mistake]]:
    """Return plain `value` as an instance of type `kind`, and the mistakes in `value`.

    The instance is None if `value` has mistakes.  At most ``MOST`` + 1 mistakes are
    listed.  A dataclass whose keys are valid adds those of its method ``mistakes()``.
    """
    reader, found = _Reader(), None
    with contextlib.suppress(_EnoughError):
        found = reader.read(kind, value, ())
    return None if reader.mistakes else found, reader.mistakes


def written(value: Any, kind: Any = None, *, whole: bool = True) -> Any:
    """Return the plain values from which :func:`read_value` makes `value` again.

    :param kind: the declared type of `value`; its class by default
    :param whole: whether to write keys with their default, too
    """
    of: Any = type(value) if kind is None else kind
    shape = _taken_apart(of).shape
    return None if value is None else shape.written(value, whole=whole)


@functools.cache
def keys_of(kind: Hashable) -> tuple[_Key, ...]:
    """Return the keys of a dataclass or NamedTuple; empty for any other type."""
    of: Any = kind
    if dataclasses.is_dataclass(of):
        hints = typing.get_type_hints(of, include_extras=True)
        return tuple(
            _Key(
                field.metadata.get("key", field.name),
                field.name,
                hints[field.name],
                field.default
                if field.default_factory is MISSING
                else field.default_factory(),
                is_name="name" in field.metadata,
                left_out="left_out" in field.metadata,
                required="required" in field.metadata,
            )
            for field in dataclasses.fields(of)
        )
    if hasattr(of, "_fields"):
        hints = typing.get_type_hints(of, include_extras=True)
        defaults = of._field_defaults
        return tuple(
            _Key(name, name, hints[name], defaults.get(name, MISSING))
            for name in of._fields
        )
    return ()


class _EnoughError(Exception):
    """The reader has found more than ``MOST`` mistakes."""


class _Reader:
    """Reads plain values as values of given types, and collects the mistakes."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def read(self, kind: Any, value: Any, path: KeyPath) -> Any:
        """Return a plain value as a value of type `kind`; undefined after a mistake."""
        return self.read_as(_taken_apart(kind), value, path)

    def read_as(self, of: _Type, value: Any, path: KeyPath) -> Any:
        """Do the same as :meth:`read` for an analysed type."""
        before = len(self.mistakes)
        shape, expected, words, _ = of
        if not shape.fits(value):
            self.say(path, f"found {shown(value)}, expected {words}")
            return None
        found = shape.read(self, value, path)
        for one in expected:
            if len(self.mistakes) == before and not one.holds(found):
                self.say(path, f"found {shown(value)}, expected {one.words}")
        return found

    def say(self, path: KeyPath, message: str) -> None:
        """Add a mistake to the list.

        :raises _EnoughError: the list is longer than ``MOST``
        """
        self.mistakes.append(Mistake(path, message))
        if len(self.mistakes) > MOST:
            raise _EnoughError


class _Shape:
    """The form that values of a type have in a file.

    :ivar of: the arguments of the type, such as the types of a list's items
    :cvar plain: the Python type of the plain value in the file
    :ivar words: the expected value for messages
    """

    plain: type = object
    words = "anything"

    def __init__(self, *of: Any) -> None:
        self.of = of

    @functools.cached_property
    def types(self) -> list[_Type]:
        """The arguments of the type, each analysed."""
        return [_taken_apart(kind) for kind in self.of if kind is not ...]

    def fits(self, value: Any) -> bool:
        """Return whether a plain value has the right form, its items aside."""
        return isinstance(value, self.plain)

    def is_read(self, _value: Any) -> bool:
        """Return whether a plain value is valid, and needs no conversion.

        A shortcut for the many simple values of a large cloud's snapshot.
        """
        return False

    def read(self, _reader: _Reader, value: Any, _path: KeyPath) -> Any:
        """Convert a plain value; report mistakes to the reader."""
        return value

    def written(self, value: Any, *, whole: bool) -> Any:  # noqa: ARG002
        """Return the plain value that :meth:`read` converts to `value`."""
        return value


class _Scalar(_Shape):
    def __init__(self, words: str, holds: Callable[[Any], bool]) -> None:
        self.words = words
        # Assigned rather than called, as each value of a snapshot is checked.
        self.fits = self.is_read = holds  # type: ignore[method-assign, assignment]


class _Choice(_Shape):
    def __init__(self, *of: str) -> None:
        super().__init__(*of)
        self.words = f"one of {', '.join(map(repr, of))}"

    def fits(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.of

    def is_read(self, value: Any) -> bool:
        return self.fits(value)


class _Parsed(_Shape):
    plain = str

    def __init__(
        self, words: str, parse: Callable[[str], Any], form: Callable[[Any], str]
    ) -> None:
        self.words = words
        self._parse = parse
        self._form = form

    def read(self, reader: _Reader, value: Any, path: KeyPath) -> Any:
        try:
            return self._parse(value)
        except ValueError as exc:
            return reader.say(path, str(exc))

    def written(self, value: Any, *, whole: bool) -> Any:  # noqa: ARG002
        return self._form(value)


class _Optional(_Shape):
    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self.words = _taken_apart(of[0]).words

    def is_read(self, value: Any) -> bool:
        return value is None or self.types[0].is_read(value)

    def read(self, reader: _Reader, value: Any, path: KeyPath) -> Any:
        return None if value is None else reader.read_as(self.types[0], value, path)

    def written(self, value: Any, *, whole: bool) -> Any:
        return written(value, self.of[0], whole=whole)


class _Several(_Shape):
    plain: type = list
    words = "a list"

    def read(self, reader: _Reader, value: Any, path: KeyPath) -> Any:
        of = self.types[0]
        return tuple(
            [
                item if of.is_read(item) else reader.read_as(of, item, (*path, str(i)))
                for i, item in enumerate(value)
            ]
        )

    def written(self, value: Any, *, whole: bool) -> Any:
        return [written(item, self.of[0], whole=whole) for item in value]


class _Names(_Several):
    def read(self, reader: _Reader, value: Any, path: KeyPath) -> Any:
        return frozenset(super().read(reader, value, path))

    def written(self, value: Any, *, whole: bool) -> Any:  # noqa: ARG002
        return sorted(value)


class _OneOrMore(_Several):
    plain = object

    def read(self, reader: _Reader, value: Any, path: KeyPath) -> Any:
        if isinstance(value, list):
            return super().read(reader, value, path)
        return (reader.read_as(self.types[0], value, path),)

    def written(self, value: Any, *, whole: bool) -> Any:
        found = super().written(value, whole=whole)
        return found[0] if len(found) == 1 else found


class _Mapping(_Shape):
    plain = dict
    words = "a mapping"

    def read(self, reader: _Reader, value: Any, path: KeyPath) -> Any:
        found = {}
        of_key, of_item = self.types
        of_number = self.of[0] is int
        for key, plain in value.items():
            name, item = key, plain
            if of_number and key.isdecimal() and len(key) <= _MOST_DIGITS:
                name = int(key)
            if not of_key.is_read(name):
                name = reader.read_as(of_key, name, (*path, key))
            if not of_item.is_read(item):
                item = reader.read_as(of_item, item, (*path, key))
            found[name] = item
        return found

    def written(self, value: Any, *, whole: bool) -> Any:
        return {
            str(key): written(v, self.of[1], whole=whole) for key, v in value.items()
        }


class _ByName(_Mapping):
    def read(self, reader: _Reader, value: Any, path: KeyPath) -> Any:
        return tuple(reader.read(self.of[0], v, (*path, k)) for k, v in value.items())

    def written(self, value: Any, *, whole: bool) -> Any:
        return {item.name: written(item, self.of[0], whole=whole) for item in value}


class _Fields(_Shape):
    plain = dict

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._name = next((key for key in keys_of(kind) if key.is_name), None)
        self._keys = {key.name: key for key in keys_of(kind) if not key.is_name}
        self._needed = [
            key.name
            for key in self._keys.values()
            if key.required or key.default is MISSING
        ]
        self.words = f"a mapping with the keys {', '.join(self._keys)}"

    @functools.cached_property
    def _fields(self) -> dict[str, tuple[str, _Type]]:
        """The field's name and type by key."""
        return {
            name: (key.field, _taken_apart(key.kind))
            for name, key in self._keys.items()
        }

    def read(self, reader: _Reader, value: Any, path: KeyPath) -> Any:
        before, fields = len(reader.mistakes), self._fields
        given = {}
        if self._name:
            given[self._name.field] = reader.read(self._name.kind, path[-1], path)
        # Loop over the file's keys: most objects of a snapshot have few of the fields.
        for name, plain in value.items():
            if name in fields:
                item, (field, of) = plain, fields[name]
                if not of.is_read(item):
                    item = reader.read_as(of, item, (*path, name))
                given[field] = item
                continue
            near = difflib.get_close_matches(name[:_MOST_SHOWN], self._keys, 1)
            hint = f"did you mean {near[0]}?" if near else f"expected {self.words}"
            reader.say((*path, name), f"unknown key; {hint}")
        for name in self._needed:
            if name not in value:
                _, of = fields[name]
                reader.say((*path, name), f"missing; expected {of.words}")
        if len(reader.mistakes) > before:
            return None
        made = self._kind(**given)
        for mistake in made.mistakes() if hasattr(made, "mistakes") else ():
            reader.say((*path, *mistake.path), mistake.message)
        return made

    def written(self, value: Any, *, whole: bool) -> Any:
        found = {}
        for key in keys_of(self._kind):
            item = getattr(value, key.field)
            stays = whole and not key.left_out
            if not key.is_name and (stays or item != key.default):
                found[key.name] = written(item, key.kind, whole=whole)
        return found


class Form(enum.Enum):
    """Forms of several values in a file other than a list."""

    # A mapping from each value's name to its other keys.
    BY_NAME = _ByName
    # A list, or a single value without a list.
    ONE_OR_MORE = _OneOrMore


class _Type(NamedTuple):
    """The analysis of a field's type.

    :ivar shape: the form in a file
    :ivar expected: the conditions on values
    :ivar words: the expected value for messages
    :ivar is_read: returns whether a plain value is valid, and needs no conversion
    """

    shape: _Shape
    expected: tuple[Expected, ...]
    words: str
    is_read: Callable[[Any], bool]


@functools.cache
def _taken_apart(kind: Any) -> _Type:
    """Analyse the type of a field: its form in a file, and its conditions."""
    notes: list[Any] = []
    if typing.get_origin(kind) is Annotated:
        kind, *notes = typing.get_args(kind)
    expected = tuple(note for note in notes if isinstance(note, Expected))
    forms = [note.value for note in notes if isinstance(note, Form)]
    made_as = forms[0] if forms else _SHAPES.get(typing.get_origin(kind))
    if kind in _SCALARS:
        shape = _SCALARS[kind]
    elif made_as:
        shape = made_as(*typing.get_args(kind))
    elif hasattr(kind, "parse"):
        shape = _Parsed("text", kind.parse, str)
    else:
        shape = _Fields(kind)
    words = expected[0].words if expected else shape.words
    is_read = (
        functools.partial(_is_read, shape, expected) if expected else shape.is_read
    )
    return _Type(shape, expected, words, is_read)


def _is_read(shape: _Shape, expected: tuple[Expected, ...], value: Any) -> bool:
    return shape.is_read(value) and all(one.holds(value) for one in expected)


def shown(value: Any) -> str:
    """Return a plain value as text for a message, cut to ``_MOST_SHOWN`` characters."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = "a mapping" if value and isinstance(value, dict) else repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _is_int(value: Any) -> bool:
    return type(value) is int and abs(value) <= sys.maxsize


def _is_number(value: Any) -> bool:
    return type(value) in {int, float} and abs(value) <= sys.float_info.max


_SHAPES: Final[dict[Any, type[_Shape]]] = {
    typing.Union: _Optional,
    types.UnionType: _Optional,
    typing.Literal: _Choice,
    tuple: _Several,
    frozenset: _Names,
    dict: _Mapping,
    collections.abc.Mapping: _Mapping,
}
_SCALARS: Final[dict[Any, _Shape]] = {
    str: _Scalar("text", lambda value: isinstance(value, str)),
    bool: _Scalar("true or false", lambda value: isinstance(value, bool)),
    int: _Scalar("a whole number", _is_int),
    float: _Scalar("a number", _is_number),
    Any: _Shape(),
    # A set of CPUs is written in Nova's format.
    frozenset[int]: _Parsed(
        "a list of CPUs such as '0-19,40'",
        # Cached, as many hosts have the same CPU sets.
        functools.lru_cache(cpuset.parse),
        cpuset.format_cpus,
    ),
}
