# SPDX-License-Identifier: Apache-2.0
"""The kinds of files that commands write and read, and which of them a text is.

One given in place of another has none of the keys that are expected; what helps is
to hear what it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from nova_perfvm.exceptions import FileMistakesError

T = TypeVar("T")


class FileKind(NamedTuple):
    """A kind of file, and how to know it.

    :ivar words: what it is, and the command that it is of
    :ivar all_of: keys at the top that each file of the kind has
    :ivar any_of: keys of which it has at least one
    :ivar machine: what its key ``kind`` says
    """

    words: str
    all_of: frozenset[str]
    any_of: frozenset[str] = frozenset()
    machine: str | None = None

    def has(self, top: Mapping[str, object]) -> bool:
        """Return whether what stands at the top of a file is of this kind."""
        return (
            self.all_of <= top.keys()
            and (not self.any_of or not self.any_of.isdisjoint(top))
            and (self.machine is None or self.machine == top.get("kind"))
        )


_COLLECTED: Final = frozenset({"kind", "hostname", "files", "commands"})
COLLECTED: Final = {
    machine: FileKind(
        f"a collected file of a {machine} (nova-perfvm {machine} collect)",
        _COLLECTED,
        machine=machine,
    )
    for machine in ("host", "guest")
}
CERTIFICATE: Final = FileKind(
    "the record of a certificate (nova-perfvm certify)",
    frozenset({"verdict", "promised", "checks"}),
)
SAMPLES: Final = FileKind(
    "measurements (nova-perfvm bench run)",
    frozenset({"schema_version"}),
    frozenset({"measurements", "scale_out"}),
)
SNAPSHOT: Final = FileKind(
    "a snapshot of a cloud (openstack perfvm snapshot save)",
    frozenset({"schema_version", "taken_at"}),
    frozenset({"hosts", "providers", "servers", "flavors"}),
)
SCENARIO: Final = FileKind(
    "a scenario (for nova-perfvm bench run)", frozenset({"targets", "groups", "tools"})
)
POLICY: Final = FileKind(
    "a policy (nova-perfvm policy show)",
    frozenset(),
    frozenset({"host_shape", "placement", "managed_hosts", "classes", "elastic"}),
)
EXECUTION: Final = FileKind(
    "the record of a plan that is carried out (openstack perfvm plan ... --record)",
    frozenset({"schema_version", "policy_digest", "purpose", "moves"}),
)
FIO: Final = FileKind("JSON of fio (--output-format=json+)", frozenset({"jobs"}))
# Those with more keys first.
KINDS: Final = (
    *COLLECTED.values(),
    *(CERTIFICATE, EXECUTION, SAMPLES, SNAPSHOT, SCENARIO, POLICY, FIO),
)
_YAML_KEY: Final = re.compile(r"^([a-z_]+):", re.MULTILINE)


def other(text: str, *expected: FileKind) -> str:
    """Return what a text is, and what was expected; empty if it is not another kind."""
    top = _top(text)
    if any(kind.has(top) for kind in expected):
        return ""
    found = _kind(top)
    if found is None:
        return ""
    return f"is {found.words}; expected: {' or '.join(k.words for k in expected)}"


def known(text: str) -> FileKind | None:
    """Return which of the kinds a text is; None if it is none of them."""
    return _kind(_top(text))


def expecting(
    load: Callable[[str, str], T], text: str, source: str, *expected: FileKind
) -> T:
    """Return what a text says; of one with mistakes say what it is instead.

    :param load: what reads it, with what to call it in errors
    :raises FileMistakesError: that ``load`` raises; in one sentence, if the text is
        of another kind
    """
    try:
        return load(text, source)
    except FileMistakesError as exc:
        words = other(text, *expected)
        if words:
            raise type(exc).of_another_kind(source, words) from None
        raise


def _kind(top: Mapping[str, object]) -> FileKind | None:
    return next((kind for kind in KINDS if kind.has(top)), None)


def _top(text: str) -> Mapping[str, object]:
    """Return what stands at the top of JSON; of YAML only the keys."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return dict.fromkeys(_YAML_KEY.findall(text))
    return found if isinstance(found, dict) else {}
