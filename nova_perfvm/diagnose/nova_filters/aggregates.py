# SPDX-License-Identifier: Apache-2.0
"""Filters that compare a request with the metadata of a host's aggregates."""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.diagnose.nova_filters import hosts
from nova_perfvm.diagnose.nova_filters.case import FilterCase, differs, values
from nova_perfvm.diagnose.nova_filters.operators import match
from nova_perfvm.facts import Reason
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.image_properties import typed

TENANT_KEY: Final = "filter_tenant_id"

_SCOPE: Final = "aggregate_instance_extra_specs"


def projects_of(view: HostView) -> set[str]:
    """Return the projects that a host's aggregates are reserved for; empty for all."""
    found = (v for k, v in values(view).items() if k.startswith(TENANT_KEY))
    return set().union(*found)


def tenants(case: FilterCase) -> Iterator[Reason]:
    """Yield a reason if aggregates reserve a host for other projects."""
    project = case.request.project
    if project and project not in (projects_of(case.view) or {project}):
        yield Reason(const.NOVA_TENANT_AGGREGATE, {"project": project})


def extra_specs(case: FilterCase) -> Iterator[Reason]:
    """Yield the extra specs that no aggregate of a host satisfies."""
    metadata = values(case.view)
    for key, wanted in case.request.keys.specs.items():
        scope, colon, name = key.partition(":")
        if colon and scope != _SCOPE:
            continue
        found = metadata.get(name if colon else key, set())
        if not any(match(value, wanted) for value in found):
            shown = ", ".join(sorted(found)) or None
            yield differs("AggregateInstanceExtraSpecsFilter", key, wanted, shown)


def image_properties(case: FilterCase) -> Iterator[Reason]:
    """Yield the image properties that a host's aggregates exclude."""
    option = "aggregate_image_properties_isolation_"
    if scope := case.option(f"{option}namespace"):
        scope += case.option(f"{option}separator", ".")
    for key, found in values(case.view).items():
        value = typed(key, case.request.keys.properties.get(key, ""))
        # Nova ignores false and 0, too.
        if value and key.startswith(scope) and str(value) not in found:
            expected = ", ".join(sorted(found))
            yield differs("AggregateImagePropertiesIsolation", key, expected, value)


def flavor_names(case: FilterCase) -> Iterator[Reason]:
    """Yield a reason if a host's aggregates are reserved for other flavors."""
    found, name = values(case.view).get("instance_type"), case.request.facts.flavor
    if found and name not in found:
        shown = ", ".join(sorted(found))
        yield differs("AggregateTypeAffinityFilter", "instance_type", name, shown)


def num_instances(case: FilterCase) -> Iterator[Reason]:
    """Yield a reason if a host has as many servers as an aggregate allows."""
    yield from hosts.num_instances(case, _least(case, "max_instances_per_host"))


def io_ops(case: FilterCase) -> Iterator[Reason]:
    """Yield a reason if a host does as much I/O as an aggregate allows."""
    yield from hosts.io_ops(case, _least(case, "max_io_ops_per_host"))


def _least(case: FilterCase, key: str) -> int | None:
    """Return the smallest number that aggregates set for a key.

    None if no aggregate has the key, or if any value is not a number.
    """
    found = [a.metadata[key] for a in case.view.aggregates if key in a.metadata]
    try:
        return min(map(int, found), default=None)
    except ValueError:
        return None
