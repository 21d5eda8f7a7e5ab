# SPDX-License-Identifier: Apache-2.0
"""Change flavors or images one by one: a refusal stops only one flavor or image."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from nova_perfvm.changes.steps import Change, CreateName
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError

# Makes one change, of the kind that the plan has.
Apply = Callable[[API, Any], None]

# HTTP statuses by which one flavor or image is refused; 401 refuses all requests.
_OF_ONE: Final = frozenset(range(400, 500)) - {401}


@dataclass(frozen=True)
class Failed:
    """A change that was refused, while the changes of other objects went on."""

    change: Any
    why: str

    @property
    def asked(self) -> bool:
        """Whether an operator named the subject; tenants' images are left alone."""
        return not getattr(self.change, "unasked", False)


def make(
    api: API,
    apply: Apply,
    changes: Iterable[Any],
    tell: Callable[[Change], None] = lambda _change: None,
) -> list[Failed]:
    """Make the changes of a plan; return the refused and the skipped ones.

    A refusal of a change stops the later changes of the same flavor or image only.

    :param apply: makes one change
    :param tell: called before each change
    :raises CloudError: when a request failed otherwise, or Placement refused a name
        that flavors need; a new run continues from there
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
                # Flavors do not work without their resource classes and traits.
                if isinstance(change, CreateName) or exc.status not in _OF_ONE:
                    raise
                whys[subject] = str(exc)
        if subject in whys:
            failed.append(Failed(change, whys[subject]))
    return failed
