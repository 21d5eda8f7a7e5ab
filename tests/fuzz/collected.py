# SPDX-License-Identifier: Apache-2.0
"""Odd files of what was collected, and odd sosreports."""

import json
import tarfile

from tests.fuzz import mutations
from tests.unit.measure import reports

_MODES = ("w", "w", "w:gz", "w:xz", "w:bz2")
_TYPES = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, b"9")


def odd_file(rng):
    """Return the bytes of a JSON or an archive that had mishaps."""
    if rng.random() < 0.4:
        return mutations.mutate(rng, json.dumps(reports.document()))
    if rng.random() < 0.3:
        data = mutations.mutate(rng, json.dumps(reports.document()))
        name = "top/collected.json"
        text = data.decode("utf-8", "replace").encode("utf-8", "replace").decode()
        members = [reports.member(name, text)]
    else:
        members = reports.sosreport()
        for _ in range(rng.choice((0, 1, 3, 9))):
            _spoil(rng, *rng.choice(members))
    data = bytearray(reports.packed(members, rng.choice(_MODES)))
    for _ in range(rng.choice((0, 0, 1, 5, 50))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data[: rng.choice((len(data), len(data), rng.randrange(len(data))))])


def _spoil(rng, info, data):
    """Rename a member, or make something else of it."""
    names = (rng.choice(mutations.WORDS), f"{reports.TOP}/{rng.choice(('..', 'proc'))}")
    name = rng.choice(names).encode("utf-8", "replace").decode().replace("\0", "")
    if rng.random() < 0.5:
        info.name = name or "x"
    else:
        info.type, info.linkname = rng.choice(_TYPES), name
        info.size = len(data) if info.type == b"9" else 0
