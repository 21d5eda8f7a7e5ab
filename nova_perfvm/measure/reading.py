# SPDX-License-Identifier: Apache-2.0
"""What was collected, from the file that it was written to."""

import functools
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, NoReturn

from nova_perfvm import filekinds, textfile
from nova_perfvm.exceptions import (
    FileMistakesError,
    KeyPath,
    Problem,
    UnreadableFileError,
)
from nova_perfvm.measure import archive, collector, sosreport
from nova_perfvm.measure.collected import (
    SCHEMA_VERSION,
    Collected,
    CommandOutput,
    Kind,
)

# Of a host with hundreds of VMs.
MOST_BYTES: Final = 512 * 1024 * 1024
# More would only be repetition of the same mistake.
_MOST_PROBLEMS: Final = 20
_JSON: Final = f"/{collector.JSON_NAME}"
_TAR, _TAR_AT = b"ustar", 257


class CollectedError(FileMistakesError):
    """A file without what a machine shows; ``problems`` has all mistakes in it."""

    title = "{source}: {count} in what was collected"


def read(path: str, kind: Kind | None = None) -> Collected:
    """Read what ``host collect`` or ``guest collect`` wrote, or a sosreport.

    :param path: of the JSON or the archive; - for JSON on standard input
    :param kind: what the machine has to be; a sosreport does not say it, and is
        taken for that
    :raises CollectedError: with all mistakes in it
    :raises ArchiveError: with the names in an archive that are refused
    :raises UnreadableFileError: when it cannot be read
    """
    if path == "-":
        data = sys.stdin.buffer.read(MOST_BYTES + 1)
        text = textfile.decode(data, "standard input", MOST_BYTES)
        return loads(text, "standard input", kind)
    if _is_archive(path):
        return _from_archive(path, kind)
    return loads(textfile.read(path, MOST_BYTES), path, kind)


def loads(text: str, source: str, kind: Kind | None = None) -> Collected:
    """Return what JSON says of a machine.

    :param source: what to call the text in errors
    :raises CollectedError: with all mistakes
    """
    expected = [
        filekinds.COLLECTED[one] for one in ([kind] if kind else collector.KINDS)
    ]
    load = functools.partial(_loaded, kind=kind)
    return filekinds.expecting(load, text, source, *expected)


def _loaded(text: str, source: str, kind: Kind | None) -> Collected:
    try:
        document = json.loads(text, parse_constant=_no_number)
    except ValueError as exc:
        expected = "expected the JSON that host collect or guest collect writes"
        problem = Problem((), f"no JSON ({exc}): {expected}")
        raise CollectedError(source, [problem]) from None
    except RecursionError:
        raise CollectedError(source, [Problem((), "nested too deeply")]) from None
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version != SCHEMA_VERSION:
        found = "missing" if version is None else f"found {version!r:.50}"
        problem = Problem(
            ("schema_version",),
            f"{found}, expected {SCHEMA_VERSION!r}: collect once more with nova-perfvm "
            "of this version",
        )
        raise CollectedError(source, [problem])
    mistakes = _mistakes(document, kind)
    problems = list(islice(mistakes, _MOST_PROBLEMS))
    if problems:
        raise CollectedError(source, problems)
    return _collected(document)


def _is_archive(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            head = file.read(_TAR_AT + len(_TAR))
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or str(exc)
        absent = isinstance(exc, FileNotFoundError)
        raise UnreadableFileError(path, reason, absent=absent) from exc
    return head.startswith(tuple(archive.COMPRESSED)) or head[_TAR_AT:] == _TAR


def _from_archive(path: str, kind: Kind | None) -> Collected:
    found = archive.read(path, _most_bytes)
    if _JSON in found.files:
        source = f"{path} ({found.top}{_JSON})"
        text = textfile.decode(found.files[_JSON], source, MOST_BYTES)
        return loads(text, source, kind)
    report = sosreport.SosReport(found)
    if not report.has_commands:
        raise UnreadableFileError(
            path,
            f"neither {collector.JSON_NAME} nor sos_commands in it: expected an "
            "archive of host collect or guest collect, or a sosreport",
        )
    # There is one look only.
    return _collected(collector.collect(kind or report.kind, 0, report))


def _most_bytes(path: str) -> int:
    return MOST_BYTES if path == _JSON else sosreport.most_bytes(path)


def _collected(document: dict[str, Any]) -> Collected:
    commands = {
        line: CommandOutput(**output) for line, output in document["commands"].items()
    }
    rest = {field.name: document[field.name] for field in fields(Collected)}
    return Collected(**rest | {"commands": commands})


def _no_number(text: str) -> NoReturn:
    message = f"{text} is no number of JSON"
    raise ValueError(message)


def _mistakes(document: dict[str, Any], kind: Kind | None) -> Iterator[Problem]:
    known = {"schema_version", *_FIELDS}
    for key in document.keys() - known:
        yield Problem((key,), f"not known, expected {', '.join(sorted(known))}")
    for key, check in _FIELDS.items():
        if key in document:
            yield from check((key,), document[key])
        else:
            yield Problem((key,), "missing: the file is not whole, collect once more")
    found = document.get("kind")
    if kind and found in collector.KINDS and found != kind:
        yield Problem(("kind",), f"found {found!r}, expected {kind!r}")


_Check = Callable[[KeyPath, Any], Iterator[Problem]]


def _value(holds: Callable[[Any], bool], expected: str) -> _Check:
    def check(path: KeyPath, value: Any) -> Iterator[Problem]:
        if not holds(value):
            yield Problem(path, f"found {value!r:.100}, expected {expected}")

    return check


def _mapping(holds: Callable[[str], bool], expected: str, check: _Check) -> _Check:
    """Return a check of a JSON object: of its keys, and of its values."""

    def check_all(path: KeyPath, value: Any) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield Problem(path, f"found {value!r:.100}, expected an object")
            return
        for key, item in value.items():
            if not holds(key):
                yield Problem((*path, key[:100]), f"expected {expected}")
            yield from check((*path, key[:100]), item)

    return check_all


def _is_time(value: Any) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        return False


def _is_seconds(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and value >= 0 and value < math.inf


def _is_exit_code(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _output(path: KeyPath, value: Any) -> Iterator[Problem]:
    if not isinstance(value, dict) or value.keys() != set(CommandOutput._fields):
        expected = ", ".join(CommandOutput._fields)
        yield Problem(path, f"found {value!r:.100}, expected an object of {expected}")
        return
    yield from _value(_is_exit_code, "a whole number")(
        (*path, "exit_code"), value["exit_code"]
    )
    for name in ("stdout", "stderr"):
        yield from _TEXT((*path, name), value[name])


_TEXT: Final = _value(lambda value: isinstance(value, str), "text")
_BY_PATH: Final = _mapping(lambda key: key.startswith("/"), "an absolute path", _TEXT)
_BY_NAME: Final = _mapping(bool, "a path or a command", _TEXT)
_FIELDS: Final[dict[str, _Check]] = {
    "kind": _value(collector.KINDS.__contains__, " or ".join(collector.KINDS)),
    "hostname": _TEXT,
    "taken_at": _value(_is_time, "a time such as 2026-11-22T10:00:00+00:00"),
    "interval_s": _value(_is_seconds, "a number of seconds"),
    "files": _BY_PATH,
    "later": _BY_PATH,
    "links": _BY_PATH,
    "commands": _mapping(bool, "a command", _output),
    "unread": _BY_NAME,
}
