# SPDX-License-Identifier: Apache-2.0
"""Change flavors or images, each by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from nova_perfvm.changes.steps import Change, CreateName
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError

Apply = Callable[[API, Change], None]

# Refusals of one flavor or image; without a login all are refused.
_OF_ONE: Final = frozenset(range(400, 500)) - {401}


@dataclass(frozen=True)
class Failed:
    """A change that was refused, while the others went on."""

    change: Any
    why: str

    @property
    def asked(self) -> bool:
        """Whether an operator named its subject; a tenant's image is left alone."""
        return not getattr(self.change, "unasked", False)


def make(
    api: API,
    apply: Apply,
    changes: Iterable[Any],
    tell: Callable[[Change], None] = lambda _change: None,
) -> list[Failed]:
    """Make the changes of a plan; return those that were not made.

    What is refused of a flavor or an image stops its other changes, and no other's.

    :param apply: makes one change
    :param tell: called before each change
    :raises CloudError: when a request failed, or a name was refused that flavors
        need; running again goes on from there
    """
    whys: dict[str, str] = {}
    failed = []
    for change in changes:
        subject = getattr(change, "id", None) or change.name
        if subject not in whys:
            tell(change)
            try:
                apply(api, change)
            except CloudError as exc:
                # No flavor works without the names.
                if isinstance(change, CreateName) or exc.status not in _OF_ONE:
                    raise
                whys[subject] = str(exc)
        if subject in whys:
            failed.append(Failed(change, whys[subject]))
    return failed
