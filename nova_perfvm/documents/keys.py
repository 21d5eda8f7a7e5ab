# SPDX-License-Identifier: Apache-2.0
"""Dataclasses that are the keys of a file.

A key is stated once, as a field: the field's type says what the key takes, and
what Python's types cannot say stands beside it in an ``Annotated``.  What is read,
what is written and what is said of mistakes follow::

    IOPS = Annotated[int, count(1, 2147483647, "I/O operations per second")]

    @dataclass(frozen=True)
    class Disk:
        read_iops: IOPS | None = None

        def mistakes(self) -> Iterator[Mistake]:
            ...  # what does not go together, where each key is right by itself

pydantic would bring compiled code into nova-scheduler, cattrs takes the text ``"20"``
for a number, and JSON schema needs a minute for the snapshot of a large cloud.
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

# What a field's ``metadata`` may say.
# The name under which its mapping stands, and no key of that mapping.
NAME: Final = {"name": True}
# Not written at its default.
LEFT_OUT: Final = {"left_out": True}
# Missing in no file that is whole, though code may leave it out.
REQUIRED: Final = {"required": True}

_MOST_SHOWN: Final = 100
# Python reads no number of thousands of digits, and no CPU has such a one.
_MOST_DIGITS: Final = 20


@dataclasses.dataclass(frozen=True)
class Expected:
    """What a value has to fulfil beside its type, to stand in an ``Annotated``.

    :ivar words: what is expected, such as ``a path``
    """

    words: str
    holds: Callable[[Any], bool] = lambda _: True


def count(minimum: int, maximum: int, unit: str) -> Expected:
    """Return what to say of an ``int`` that counts something."""
    words = f"a whole number of {unit} from {minimum} to {maximum}"
    return Expected(words, lambda number: minimum <= number <= maximum)


def matching(pattern: str, words: str) -> Expected:
    """Return what to say of a ``str`` all of which matches a pattern."""
    compiled = re.compile(pattern)
    return Expected(words, lambda text: compiled.fullmatch(text) is not None)


def some(words: str) -> Expected:
    """Return what to say of a text or several values that are not empty."""
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
    """One field of a dataclass, or of a NamedTuple."""

    name: str
    field: str
    kind: Any
    default: Any
    is_name: bool = False
    left_out: bool = False
    required: bool = False


def read_value(kind: Any, value: Any) -> tuple[Any, list[Mistake]]:
    """Return `value` as an instance of type `kind`, and the first mistakes in it.

    The instance is None if there are mistakes.  Mistakes come in the order of the file.
    A dataclass with valid keys adds those of its own method ``mistakes()``.
    """
    reader, found = _Reader(), None
    with contextlib.suppress(_EnoughError):
        found = reader.read(kind, value, ())
    return None if reader.mistakes else found, reader.mistakes


def written(value: Any, kind: Any = None, *, whole: bool = True) -> Any:
    """Return the plain values that :func:`read_value` makes a value of.

    :param whole: whether every key is written, or none that has its default
    """
    of: Any = type(value) if kind is None else kind
    shape = _taken_apart(of).shape
    return None if value is None else shape.written(value, whole=whole)


@functools.cache
def keys_of(kind: Hashable) -> tuple[_Key, ...]:
    """Return the keys of a dataclass or a NamedTuple; none of any other type."""
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
    """More mistakes than anybody reads."""


class _Reader:
    """Reads values of given types, and keeps what is wrong with them."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def read(self, kind: Any, value: Any, path: KeyPath) -> Any:
        """Return a value of a type; anything if there is a mistake in it."""
        return self.read_as(_taken_apart(kind), value, path)

    def read_as(self, of: _Type, value: Any, path: KeyPath) -> Any:
        """Do the same with a type that is taken apart."""
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
        """Keep a mistake.

        :raises _EnoughError: when there are more than anybody reads
        """
        self.mistakes.append(Mistake(path, message))
        if len(self.mistakes) > MOST:
            raise _EnoughError


class _Shape:
    """How the values of a type stand in a file.

    :ivar of: the types that it is made of
    :cvar plain: as what they stand there
    """

    plain: type = object
    words = "anything"

    def __init__(self, *of: Any) -> None:
        self.of = of

    @functools.cached_property
    def types(self) -> list[_Type]:
        """What it is made of, taken apart."""
        return [_taken_apart(kind) for kind in self.of if kind is not ...]

    def fits(self, value: Any) -> bool:
        """Return whether a value may be one."""
        return isinstance(value, self.plain)

    def is_read(self, _value: Any) -> bool:
        """Return whether a plain value is known to be the value read from it.

        So are most in the snapshot of a large cloud.
        """
        return False

    def read(self, _reader: _Reader, value: Any, _path: KeyPath) -> Any:
        """Return the value that a plain one is, if there is no mistake in it."""
        return value

    def written(self, value: Any, *, whole: bool) -> Any:  # noqa: ARG002
        """Return the plain value that a value is read from."""
        return value


class _Scalar(_Shape):
    def __init__(self, words: str, holds: Callable[[Any], bool]) -> None:
        self.words = words
        # Asked of each value of a snapshot.
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
        return super().read(reader, value if isinstance(value, list) else [value], path)

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
        """The field of each key, and what that takes."""
        return {
            name: (key.field, _taken_apart(key.kind))
            for name, key in self._keys.items()
        }

    def read(self, reader: _Reader, value: Any, path: KeyPath) -> Any:
        before, fields = len(reader.mistakes), self._fields
        given = {}
        if self._name:
            given[self._name.field] = reader.read(self._name.kind, path[-1], path)
        # Those of the file, as most objects of a large cloud have few of their keys.
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
    """How several values stand in a file, where it is not as a list."""

    # A mapping of their names to the rest of them.
    BY_NAME = _ByName
    # A list, or the only one without it.
    ONE_OR_MORE = _OneOrMore


class _Type(NamedTuple):
    """A field's type, taken apart.

    :ivar words: what is expected
    :ivar is_read: of a plain value, whether it is known to be the value read from it
    """

    shape: _Shape
    expected: tuple[Expected, ...]
    words: str
    is_read: Callable[[Any], bool]


@functools.cache
def _taken_apart(kind: Any) -> _Type:
    """Take apart the type of a field."""
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
    """Return a value of a file as a message shows it."""
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
    # Sets of CPUs stand there as Nova writes them.
    frozenset[int]: _Parsed(
        "a list of CPUs such as '0-19,40'",
        # Hosts are alike.
        functools.lru_cache(cpuset.parse),
        cpuset.format_cpus,
    ),
}
