# SPDX-License-Identifier: Apache-2.0
"""Snapshots as JSON, and every mistake of such a file with its place.

The dataclasses are the schema: a key is a field's name, sets of CPUs are
written as Nova writes them, and what has its default may be left out.
"""

import collections.abc
import dataclasses
import datetime as dt
import functools
import json
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from nova_perfvm import cpuset, filekinds
from nova_perfvm.exceptions import CPUSetError, FileMistakesError, Problem, ShapeError
from nova_perfvm.facts.snapshot.model import CELL_SOURCES, SCHEMA_VERSION, Snapshot
from nova_perfvm.policy import HostShape

_CPUS = frozenset[int]
_NAMES = frozenset[str]
# Python reads no number of thousands, and no CPU has such a one.
_MOST_DIGITS = 20


def _of(*kinds: type) -> Callable[[Any], Any]:
    """Return a function that takes values of some types only; bool is no int."""

    def checked(value: Any) -> Any:
        if not isinstance(value, kinds) or isinstance(value, bool) != (bool in kinds):
            raise TypeError
        return value

    return checked


# What is no list and no mapping: how it is read, and what is expected.
_SCALARS: dict[Any, tuple[Callable[[Any], Any], str]] = {
    str: (_of(str), "text"),
    int: (_of(int), "a whole number"),
    float: (_of(int, float), "a number"),
    bool: (_of(bool), "true or false"),
    _CPUS: (cpuset.parse, "a list of CPUs such as '0-19,40'"),
    HostShape: (HostShape.parse, "a host shape such as '2x20'"),
}


class SnapshotError(FileMistakesError):
    """A file that is no snapshot; ``problems`` holds the mistakes in it."""

    title = "{source} is no snapshot that can be used:"
    # More would only be repetition of the same mistake.
    most_shown = 20


def dumps(snapshot: Snapshot) -> str:
    """Return the JSON of a snapshot."""
    return json.dumps(_plain(snapshot), indent=1) + "\n"


def loads(text: str, source: str = "the snapshot") -> Snapshot:
    """Return the snapshot that JSON describes.

    :param source: what to call the text in errors
    :raises SnapshotError: with all mistakes
    """
    return filekinds.expecting(_loaded, text, source, filekinds.SNAPSHOT)


def _loaded(text: str, source: str) -> Snapshot:
    try:
        document = json.loads(text, parse_constant=_no_number)
    except ValueError as exc:
        raise SnapshotError(source, [Problem((), f"no JSON: {exc}")]) from None
    except RecursionError:
        raise SnapshotError(source, [Problem((), "nested too deeply")]) from None
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version != SCHEMA_VERSION:
        found = "missing" if version is None else f"found {version!r}"
        problem = Problem(
            ("schema_version",),
            f"{found}, expected {SCHEMA_VERSION!r}: take the snapshot with openstack "
            "perfvm snapshot save of the same version",
        )
        raise SnapshotError(source, [problem])
    reader = _Reader()
    snapshot = reader.read(Snapshot, document, ())
    reader.problems += _inconsistent(snapshot) if not reader.problems else []
    if reader.problems:
        raise SnapshotError(source, reader.problems)
    return typing.cast("Snapshot", snapshot)


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _plain(value: Any, kind: Any = None) -> Any:
    if isinstance(value, HostShape):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        hints = _hints(type(value))
        return {
            field.name: _plain(found, hints[field.name])
            for field in dataclasses.fields(value)
            if (found := getattr(value, field.name)) != _default(field)
            or field.name == "schema_version"
        }
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if kind == _NAMES:
        return sorted(value)
    if isinstance(value, frozenset):
        return cpuset.format_cpus(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _inconsistent(snapshot: Snapshot) -> list[Problem]:
    """List names that stand for nothing, or for two things, and no times."""
    found = []
    if not _is_time(snapshot.taken_at):
        found.append(
            Problem(
                ("taken_at",),
                f"found {snapshot.taken_at!r}, expected a time with its offset such as "
                "'2026-01-31T12:00:00+00:00'",
            )
        )
    for key, ids in (
        ("hosts", [host.provider for host in snapshot.hosts]),
        ("providers", [provider.uuid for provider in snapshot.providers]),
        ("servers", [server.id for server in snapshot.servers]),
        ("flavors", [flavor.id for flavor in snapshot.flavors]),
    ):
        seen: set[str] = set()
        for index, name in enumerate(ids):
            if name in seen:
                found.append(Problem((key, str(index)), f"{name} is there twice"))
            seen.add(name)
    found += [
        Problem(
            ("hosts", str(index), "cells_source"),
            f"found {host.cells_source!r}, expected one of {', '.join(CELL_SOURCES)}",
        )
        for index, host in enumerate(snapshot.hosts)
        if host.cells_source not in CELL_SOURCES
    ]
    return found


def _is_time(text: str) -> bool:
    try:
        return dt.datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


class _Reader:
    """Reads values of given types, and keeps what is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def read(self, kind: Any, value: Any, path: tuple[str, ...]) -> Any:
        """Return a value of a type; anything if there is a mistake in it."""
        origin, arguments = _taken_apart(kind)
        if origin is types.UnionType:
            return None if value is None else self.read(arguments[0], value, path)
        if kind in _SCALARS:
            return self._scalar(kind, value, path)
        if dataclasses.is_dataclass(kind):
            return self._fields(kind, value, path)
        if origin is collections.abc.Mapping:
            return self._mapping(arguments, value, path)
        if not isinstance(value, list):
            return self._expected("a list", value, path)
        items = [
            self.read(arguments[0], item, (*path, str(index)))
            for index, item in enumerate(value)
        ]
        return None if self.problems else origin(items)

    def _fields(self, kind: Any, value: Any, path: tuple[str, ...]) -> Any:
        if not isinstance(value, dict):
            return self._expected("a mapping", value, path)
        hints = _hints(kind)
        for key in value.keys() - hints.keys():
            self._say((*path, str(key)), "unknown key: remove it")
        given = {}
        for field in dataclasses.fields(kind):
            here = (*path, field.name)
            if field.name in value:
                given[field.name] = self.read(
                    hints[field.name], value[field.name], here
                )
            elif _default(field) is dataclasses.MISSING:
                self._say(here, "missing")
        return None if self.problems else kind(**given)

    def _mapping(
        self, kinds: tuple[Any, ...], value: Any, path: tuple[str, ...]
    ) -> Any:
        if not isinstance(value, dict):
            return self._expected("a mapping", value, path)
        found = {}
        for key, item in value.items():
            here = (*path, key)
            name: Any = key
            if kinds[0] is int:
                if not key.isdecimal() or len(key) > _MOST_DIGITS:
                    self._expected("whole numbers as keys", key, here)
                    continue
                name = int(key)
            found[name] = self.read(kinds[1], item, here)
        return found

    def _scalar(self, kind: Any, value: Any, path: tuple[str, ...]) -> Any:
        read, expected = _SCALARS[kind]
        try:
            return read(value)
        except (CPUSetError, ShapeError, TypeError, AttributeError):
            return self._expected(expected, value, path)

    def _expected(self, what: str, value: Any, path: tuple[str, ...]) -> None:
        shown = json.dumps(value)
        shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
        self._say(path, f"found {shown}, expected {what}")

    def _say(self, path: tuple[str, ...], message: str) -> None:
        self.problems.append(Problem(path, message))


@functools.cache
def _taken_apart(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    return typing.get_origin(kind), typing.get_args(kind)


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)
