# SPDX-License-Identifier: Apache-2.0
"""Proxies are for the world outside: pip asks them, and nobody for the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.sandbox.processes.ports import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Mapping

_OURS: Final = (ADDRESS, "localhost")
# Some programs read one, some the other, which stands for it where it is missing.
_NAMES: Final = ("no_proxy", "NO_PROXY")


def exemptions(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that exempt this machine from proxies, too.

    :param environ: what they are now; whatever they exempt stays exempted
    """
    either = next(filter(None, map(environ.get, _NAMES)), "")
    return {name: _with_ours(environ.get(name) or either) for name in _NAMES}


def _with_ours(said: str) -> str:
    # All is exempted, but only if nothing else is named.
    if said.strip() == "*":
        return said
    named = said.replace(",", " ").split()
    missing = [name for name in _OURS if name not in named]
    return ",".join([said.rstrip(" ,"), *missing] if named else missing)
