# SPDX-License-Identifier: Apache-2.0
"""The input of a filter, and functions that the filters share."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from nova_perfvm import constants as const
from nova_perfvm.facts import Reason
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.placement_request import whole_number
from nova_perfvm.facts.prefilters import Options
from nova_perfvm.policy import Policy

_NONE: Final[Options] = {}


class FilterCase(NamedTuple):
    """One request on one host.

    :ivar options: of nova.conf; an option that is absent has Nova's default
    :ivar offered: whether Placement offers the host; if Placement knows NUMA nodes,
        only the offered nodes may then be used
    :ivar wrong: the result of :func:`nova_perfvm.rules.check_request`; None if not
        computed yet
    """

    policy: Policy
    request: Request
    view: HostView
    options: Options = _NONE
    offered: bool = True
    wrong: tuple[Reason, ...] | None = None

    def option(self, name: str, default: str = "") -> str:
        """Return an option of [filter_scheduler]."""
        return self.options.get(("filter_scheduler", name), default)

    def number(self, name: str, default: int) -> int:
        """Return an option of [filter_scheduler] that is a whole number."""
        found = whole_number(self.option(name))
        return default if found is None else found

    def names(self, option: str) -> list[str]:
        """Return the names that an option of [filter_scheduler] lists."""
        return [s.strip() for s in self.option(option).split(",") if s.strip()]


def differs(name: str, what: str, expected: object, found: object) -> Reason:
    """Return the reason that a host has another value than a filter wants.

    :param name: the filter's class
    :param found: the host's value; None if it has none
    """
    data = {"filter": name, "what": what, "expected": expected, "found": found}
    return Reason(const.FILTER_CODES[name], data)


def not_judged(name: str, what: str) -> Reason:
    """Return the reason that a filter cannot be judged without the data `what`."""
    return Reason(const.NOT_JUDGED, {"filter": name, "what": what})


def values(view: HostView) -> Mapping[str, set[str]]:
    """Return {key: values} of the metadata of all aggregates of a host."""
    found: dict[str, set[str]] = {}
    for aggregate in view.aggregates:
        for key, value in aggregate.metadata.items():
            parts = {part.strip() for part in value.split(",")}
            found.setdefault(key, set()).update(parts)
    return found
