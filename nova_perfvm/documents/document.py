# SPDX-License-Identifier: Apache-2.0
"""Read and write whole files: a file becomes one value, or a list of its mistakes.

Each file says at its top of which kind it is, and of which version of that kind::

    kind: policy
    schema_version: "1.0"

A file without ``kind`` is read as the kind that is expected.
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

    :ivar title: what it is, and the command that writes or takes it
    :ivar by_hand: whether people write it, in YAML; programs write JSON
    """

    title: str
    most_bytes: int
    by_hand: bool = False


# By what the key ``kind`` says.
KINDS: Final = {
    # Some hundreds of classes, and read within seconds.
    "policy": FileKind("a policy (nova-perfvm policy show)", 256 * _KIB, by_hand=True),
    "inventory": FileKind(
        "an inventory of hosts (for --inventory)", 16 * _MIB, by_hand=True
    ),
    "scenario": FileKind(
        "a scenario (for nova-perfvm bench run)", 16 * _MIB, by_hand=True
    ),
    "known-bug": FileKind("a known bug of Nova", 16 * _KIB, by_hand=True),
    # Of some hundred thousand servers.
    "snapshot": FileKind(
        "a snapshot of a cloud (openstack perfvm snapshot save)", 512 * _MIB
    ),
    "plan-record": FileKind(
        "the record of a plan (openstack perfvm plan ... --record)", 16 * _MIB
    ),
    # Of a fleet over days, with figures for every second of it.
    "measurements": FileKind("measurements (nova-perfvm bench run)", 256 * _MIB),
    "certificate": FileKind(
        "the record of a certificate (nova-perfvm certify)", 256 * _MIB
    ),
    "proof": FileKind("the record of a proof (openstack perfvm prove)", 512 * _MIB),
    # Of a host with hundreds of VMs.
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
    """Read a file, from standard input if the path is ``-``; see parse_document.

    :raises UnreadableFileError: when it cannot be read as text, or is too long
    """
    kinds = _listed(kinds)
    return parse_document(kinds, of, *read_text(kinds, path), **options)


def read_text(kinds: list[str], path: str | Path) -> tuple[str, str]:
    """Return the text of a file that should be of some kind, and what to call it.

    :raises UnreadableFileError: when it cannot be read as text, or is too long
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
    """Return the value that a text says.

    :param kinds: which the file may be of; it may say none
    :param of: the dataclass whose fields are the keys of the file
    :param source: what to call the text in errors
    :param defaults: plain values for keys at the top that the file leaves out
    :param check: lists more mistakes of a value that is right by itself
    :raises DocumentError: with every mistake; with one if it is of another kind
    """
    kinds = _listed(kinds)
    expected = _expected(kinds)
    # First, as what machines wrote may be megabytes, which YAML takes minutes for.
    data, fault = _json(text)
    found = _kind_in(data)
    if found and found not in kinds:
        message = f"this is {KINDS[found].title}; expected {expected}"
        raise DocumentError(source, [Mistake((), message)], kinds[0])
    parsed, mistakes = None, []
    if KINDS[kinds[0]].by_hand:
        # Of YAML, snapshots load nothing.
        from nova_perfvm.documents.yaml_lines import YAMLText  # noqa: PLC0415

        parsed = YAMLText(text)
        data, mistakes = parsed.data, parsed.mistakes
    elif fault:
        mistakes = [Mistake((), f"{fault}; expected {expected}")]
    value = None
    if not mistakes:
        value, mistakes = _read_document(kinds, of, data, defaults)
        if check and value is not None:
            mistakes = first(check(value))
        mistakes = parsed.in_order(mistakes) if parsed else mistakes
    if mistakes:
        raise DocumentError(source, mistakes, kinds[0])
    return cast("T", value)


def _read_document(
    kinds: list[str], of: type[T], data: Any, defaults: Mapping[str, Any] | None
) -> tuple[T | None, list[Mistake]]:
    """Return the value of what stands at the top of a file, and every mistake in it."""
    form: Any = of
    keys = {key.name for key in keys_of(form)}
    if not isinstance(data, dict):
        message = f"found {shown(data)}, expected a mapping with schema_version"
        return None, [Mistake((), message)]
    mistakes = []
    version = data.get("schema_version")
    if version != SCHEMA_VERSION:
        found = f"found {shown(version)}" if "schema_version" in data else "missing"
        message = f'{found}, expected "{SCHEMA_VERSION}", in quotes'
        mistakes.append(Mistake(("schema_version",), message))
        if version is not None:
            # To judge the keys of another version helps nobody.
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
        why = " (in the built-in value: the file has none)" if built_in else ""
        mistakes.append(replace(mistake, message=mistake.message + why))
    return (None if mistakes else value), list(dict.fromkeys(mistakes))


def dump_document(kind: str, value: Any, *, whole: bool = False) -> str:
    """Return the text of a file that :func:`parse_document` reads back.

    :param whole: whether to write keys that have their default, too
    """
    document = as_document(kind, value, whole=whole)
    if KINDS[kind].by_hand:
        from nova_perfvm.documents.yaml_lines import dump_yaml  # noqa: PLC0415

        return dump_yaml(document)
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def as_document(kind: str, value: Any, *, whole: bool = False) -> dict[str, Any]:
    """Return what stands in a file, as plain values."""
    rest: dict[str, Any] = written(value, whole=whole)
    return {"kind": kind, "schema_version": SCHEMA_VERSION} | rest


def kind_of(text: str) -> str | None:
    """Return which kind of file JSON says that it is; None if it says none."""
    return _kind_in(_json(text)[0])


def _kind_in(data: Any) -> str | None:
    kind = data.get("kind") if isinstance(data, dict) else None
    return kind if isinstance(kind, str) and kind in KINDS else None


def _expected(kinds: Iterable[str]) -> str:
    """Return in words what a file should be."""
    return " or ".join(KINDS[kind].title for kind in kinds)


def _listed(kinds: str | Iterable[str]) -> list[str]:
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _json(text: str) -> tuple[Any, str]:
    """Return what JSON says, and why it is none."""
    try:
        return json.loads(text, parse_constant=_refuse_constant), ""
    except RecursionError:
        return None, "nested too deeply"
    except ValueError as exc:
        return None, f"no JSON: {exc}"


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")
