# SPDX-License-Identifier: Apache-2.0
"""Read Nova's limits in Keystone, and change them to those of a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from nova_perfvm.changes.limits import ChangeLimit, Home, SeenLimit, plan_limits
from nova_perfvm.changes.steps import Change, Plan
from nova_perfvm.cloud import at_once
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError, openstack_errors
from nova_perfvm.generate.limits import Limit

# Projects whose usage is read at the same time.
_AT_ONCE: Final = 8


@openstack_errors()
def plan(api: API, limits: Sequence[Limit], region: str | None = None) -> Plan:
    """Return the steps that turn a cloud's limits into those of a policy.

    :param region: ID of the region of Nova's endpoint; None for its only region
    :raises CloudError: when a request fails, or Nova's region is ambiguous
    :raises NotThereError: when a project of `limits` does not exist
    """
    home = _home(api, region)
    for project in {limit.project for limit in limits if limit.project}:
        api.keystone("GET", f"/projects/{quote(project, safe='')}")
    path = f"/registered_limits?service_id={home.service}"
    defaults = api.keystone("GET", path, key="registered_limits")
    seen = []
    for found in (*defaults, *api.limits(f"/limits?service_id={home.service}")):
        whose = found.get("project_id") or found.get("domain_id") or ""
        value = found["resource_limit" if whose else "default_limit"]
        if found["region_id"] == home.region:
            seen.append(SeenLimit(found["id"], found["resource_name"], value, whose))
    planned = plan_limits(limits, seen, home)
    changes = tuple(_with_over(api, change, seen) for change in planned.changes)
    return replace(planned, changes=changes)


def _with_over(api: API, change: Change, seen: Sequence[SeenLimit]) -> Change:
    """Return a change that names the projects whose usage exceeds the new limit."""
    if not isinstance(change, ChangeLimit) or not change.lowers:
        return change
    limit = change.limit
    projects = {limit.project}
    if not limit.project:
        listed = api.keystone("GET", "/projects", key="projects")
        own = {one.project for one in seen if one.resource == limit.resource}
        projects = {project["id"] for project in listed} - own

    def read(project: str) -> int:
        path = f"/usages?project_id={quote(project, safe='')}"
        used = api.placement("GET", path, key="usages")
        return int(used.get(limit.resource.removeprefix("class:"), 0))

    found = {p: f.result() for p, f in at_once.each(read, projects, _AT_ONCE)}
    over = {p: used for p, used in sorted(found.items()) if used > limit.value}
    return replace(change, over=over)


def apply(api: API, change: ChangeLimit) -> None:
    """Make one change of a plan."""
    limit = change.limit
    kind = limit.kind.replace(" ", "_")
    # Keystone answers 403 to a default beside limits of projects, and 409 to a second
    # limit of a project (keystone/limit/backends/sql.py).  The plan has refused both
    # where it has seen the limits of projects.
    hidden = 403 if change.before else 409
    try:
        if change.before:
            body = {kind: {limit.field: limit.value}}
            api.keystone("PATCH", f"/{kind}s/{change.before.id}", body)
        else:
            home = {"service_id": change.home.service, "region_id": change.home.region}
            api.keystone("POST", f"/{kind}s", {f"{kind}s": [home | limit.members]})
    except CloudError as exc:
        if exc.status != hidden:
            raise
        raise CloudError(
            f"Keystone refuses {change.name} = {limit.value} ({exc.status}): the user "
            "cannot see the limits that projects have, without a role on the system: "
            "openstack role add --system all --user USER reader; then run this again",
            exc.status,
        ) from exc


def _home(api: API, region: str | None) -> Home:
    """Return the service and the region that the limits belong to."""
    services = api.keystone("GET", "/services?type=compute", key="services")
    if not services:
        raise CloudError("Keystone knows no service of type compute: register Nova's")
    # A service of an old compute API may be registered beside Nova's.
    service = next((s for s in services if s.get("name") == "nova"), services[0])["id"]
    path = f"/endpoints?service_id={service}"
    regions = {e["region_id"] for e in api.keystone("GET", path, key="endpoints")}
    wanted = {region} if region else regions
    if len(wanted) != 1 or not wanted <= regions:
        raise CloudError(
            f"Nova's endpoints are in {', '.join(sorted(map(str, regions)))}: name the "
            "region of one (--region)"
        )
    return Home(service, *wanted)
