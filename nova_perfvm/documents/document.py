# SPDX-License-Identifier: Apache-2.0
"""Read and write whole files: a file becomes one value, or a list of its mistakes.

Each file names its kind and the version of its format at the top::

    kind: policy
    schema_version: "1.0"

A file without ``kind`` is read as the kind that the caller expects.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, TypeVar, cast

from nova_perfvm.documents import textfile
from nova_perfvm.documents.keys import keys_of, read_value, shown, written
from nova_perfvm.documents.mistakes import DocumentError, Mistake, first

T = TypeVar("T")

SCHEMA_VERSION: Final = "1.0"
_KIB: Final = 1024
_MIB: Final = 1024 * _KIB


class FileKind(NamedTuple):
    """A kind of file.

    :ivar title: its name for messages, and the command that writes or reads such files
    :ivar most_bytes: size limit in bytes
    :ivar by_hand: True for YAML, which people write; False for JSON from programs
    """

    title: str
    most_bytes: int
    by_hand: bool = False


# File kinds by the value of the key ``kind``.  The size limits allow for:
KINDS: Final = {
    # some hundreds of classes, read within seconds
    "policy": FileKind("a policy (nova-perfvm policy show)", 256 * _KIB, by_hand=True),
    "inventory": FileKind(
        "an inventory of hosts (for --inventory)", 16 * _MIB, by_hand=True
    ),
    "services": FileKind(
        "a table of services (for nova-perfvm plan servers)", 16 * _MIB, by_hand=True
    ),
    "scenario": FileKind(
        "a scenario (for nova-perfvm bench run)", 16 * _MIB, by_hand=True
    ),
    "known-bug": FileKind("a known bug of Nova", 16 * _KIB, by_hand=True),
    # some hundred thousand servers
    "snapshot": FileKind(
        "a snapshot of a cloud (openstack perfvm snapshot save)", 512 * _MIB
    ),
    "plan-record": FileKind(
        "the record of a plan (openstack perfvm plan ... --record)", 16 * _MIB
    ),
    # figures of a fleet for every second of several days
    "measurements": FileKind("measurements (nova-perfvm bench run)", 256 * _MIB),
    "proof": FileKind("the record of a proof (openstack perfvm prove)", 512 * _MIB),
    # a host with hundreds of VMs
    "host": FileKind(
        "a collected file of a host (nova-perfvm host collect)", 512 * _MIB
    ),
    "guest": FileKind(
        "a collected file of a guest (nova-perfvm guest collect)", 512 * _MIB
    ),
}


def load_document(
    kinds: str | Iterable[str], of: type[T], path: str | Path, **options: Any
) -> T:
    """Read a file and return its value; see :func:`parse_document`.

    :param path: path of the file; ``-`` for standard input
    :raises UnreadableFileError: the file cannot be read, is no text, or is too long
    """
    kinds = _listed(kinds)
    return parse_document(kinds, of, *read_text(kinds, path), **options)


def read_text(kinds: list[str], path: str | Path) -> tuple[str, str]:
    """Return the text of a file, and the file's name for messages.

    :param kinds: kinds that the file may have; the first sets the size limit
    :raises UnreadableFileError: the file cannot be read, is no text, or is too long
    """
    source = "standard input" if str(path) == "-" else str(path)
    form = KINDS[kinds[0]]
    expected = f"{_expected(kinds)}, in {'YAML' if form.by_hand else 'plain JSON'}"
    return textfile.read(path, form.most_bytes, expected), source


def parse_document(
    kinds: str | Iterable[str],
    of: type[T],
    text: str,
    source: str,
    *,
    defaults: Mapping[str, Any] | None = None,
    check: Callable[[T], Iterable[Mistake]] | None = None,
) -> T:
    """Return the value that the text of a file declares.

    :param kinds: kinds that the file may have; the first is that of a file without one
    :param of: the dataclass whose fields are the keys of the file
    :param source: the file's name in errors
    :param defaults: plain values for top-level keys that the file leaves out
    :param check: lists further mistakes of a value that is valid by itself
    :raises DocumentError: the file has mistakes, or another kind
    """
    kinds = _listed(kinds)
    # JSON comes first: PyYAML needs minutes for the megabytes that programs write.
    data, fault = _json(text)
    _check_kind(kinds, data, source)
    parsed, mistakes = None, []
    if KINDS[kinds[0]].by_hand:
        # Imported here, as commands that read snapshots need no YAML.
        from nova_perfvm.documents.yaml_lines import YAMLText  # noqa: PLC0415

        parsed = YAMLText(text)
        data, mistakes = parsed.data, parsed.mistakes
        _check_kind(kinds, data, source)
    elif fault:
        mistakes = [Mistake((), f"{fault}; expected {_expected(kinds)}")]
    value = None
    if not mistakes:
        value, mistakes = _read_document(kinds, of, data, defaults)
        if check and value is not None:
            mistakes = first(check(value))
        mistakes = parsed.in_order(mistakes) if parsed else mistakes
    if mistakes:
        raise DocumentError(source, mistakes, kinds[0])
    return cast("T", value)


def _check_kind(kinds: list[str], data: Any, source: str) -> None:
    """Refuse a file of another kind before its keys are judged."""
    found = _kind_in(data)
    if found and found not in kinds:
        message = f"this is {KINDS[found].title}; expected {_expected(kinds)}"
        raise DocumentError(source, [Mistake((), message)], kinds[0])


def _read_document(
    kinds: list[str], of: type[T], data: Any, defaults: Mapping[str, Any] | None
) -> tuple[T | None, list[Mistake]]:
    """Return the value of a file's plain data, or None, and the file's mistakes."""
    form: Any = of
    keys = {key.name for key in keys_of(form)}
    if not isinstance(data, dict):
        found = "the file is empty" if data is None else f"found {shown(data)}"
        message = f"{found}, expected a mapping with schema_version"
        return None, [Mistake((), message)]
    mistakes = []
    version = data.get("schema_version")
    if version != SCHEMA_VERSION:
        found = f"found {shown(version)}" if "schema_version" in data else "missing"
        message = f'{found}, expected "{SCHEMA_VERSION}", in quotes'
        mistakes.append(Mistake(("schema_version",), message))
        if version is not None:
            # Documents of another version may have other keys; judging them is useless.
            return None, mistakes
    if "kind" not in keys and data.get("kind", kinds[0]) not in kinds:
        message = f"found {shown(data['kind'])}, expected {' or '.join(kinds)}"
        mistakes.append(Mistake(("kind",), message))
    head = {"kind", "schema_version"} - keys if keys else set()
    whole = {**(defaults or {}), **data}
    value, more = read_value(
        of, {key: item for key, item in whole.items() if key not in head}
    )
    for mistake in more:
        built_in = mistake.path and mistake.path[0] in whole.keys() - data.keys()
        why = " (in the built-in value: the file lacks the key)" if built_in else ""
        mistakes.append(replace(mistake, message=mistake.message + why))
    return (None if mistakes else value), list(dict.fromkeys(mistakes))


def dump_document(kind: str, value: Any, *, whole: bool = False) -> str:
    """Return the text of a file that :func:`parse_document` reads back.

    :param whole: whether to write keys with their default, too
    """
    document = as_document(kind, value, whole=whole)
    if KINDS[kind].by_hand:
        from nova_perfvm.documents.yaml_lines import dump_yaml  # noqa: PLC0415

        return dump_yaml(document)
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def as_document(kind: str, value: Any, *, whole: bool = False) -> dict[str, Any]:
    """Return the content of a file as plain values: kind, version, and all keys.

    :param whole: whether to include keys with their default
    """
    rest: dict[str, Any] = written(value, whole=whole)
    return {"kind": kind, "schema_version": SCHEMA_VERSION} | rest


def kind_of(text: str) -> str | None:
    """Return the kind that a JSON text names; None without a known kind."""
    return _kind_in(_json(text)[0])


def _kind_in(data: Any) -> str | None:
    kind = data.get("kind") if isinstance(data, dict) else None
    return kind if isinstance(kind, str) and kind in KINDS else None


def _expected(kinds: Iterable[str]) -> str:
    """Return the titles of the expected kinds for a message."""
    return " or ".join(KINDS[kind].title for kind in kinds)


def _listed(kinds: str | Iterable[str]) -> list[str]:
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _json(text: str) -> tuple[Any, str]:
    """Return the plain data of a JSON text, and the error if it is not JSON."""
    try:
        return json.loads(text, parse_constant=_refuse_constant), ""
    except RecursionError:
        return None, "nested too deeply"
    except ValueError as exc:
        return None, f"not JSON: {exc}"


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")
