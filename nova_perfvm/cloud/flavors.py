# SPDX-License-Identifier: Apache-2.0
"""Read the flavors of a cloud, and change them to those of a policy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from urllib.parse import quote

from nova_perfvm.changes import steps as do
from nova_perfvm.changes.flavors import (
    CreateFlavor,
    RecordKeys,
    SeenFlavor,
    SetSpecs,
    UnsetSpec,
    plan_flavors,
)
from nova_perfvm.changes.steps import Plan
from nova_perfvm.cloud import answers
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.apply import Applier
from nova_perfvm.cloud.errors import CloudError, openstack_errors
from nova_perfvm.generate.flavors import PolicyFlavor
from nova_perfvm.policy import Policy


def plan(
    api: API,
    desired: Sequence[PolicyFlavor],
    *,
    policy: Policy,
    adopt: Collection[str] = (),
) -> Plan:
    """Return the steps that turn a cloud's flavors into those of a policy."""
    traits, classes = answers.known_names(api)
    known = traits | classes
    return plan_flavors(desired, flavors(api), known, policy=policy, adopt=adopt)


@openstack_errors()
def flavors(api: API) -> list[SeenFlavor]:
    """Return all flavors; an administrator gets the private ones too."""
    return [
        SeenFlavor(
            **answers.flavor(found),
            ephemeral_gb=found["OS-FLV-EXT-DATA:ephemeral"],
            swap_mb=found["swap"] or 0,
            description=found["description"],
        )
        for found in answers.flavor_list(api)
    ]


def apply(api: API, change: do.Change) -> None:
    """Make one change of a plan."""
    match change:
        case do.CreateName():
            Applier(api).apply(change)
        case CreateFlavor():
            _create(api, change)
        case SetSpecs():
            _set_specs(api, change.id, change.extra_specs)
        case UnsetSpec():
            path = f"/flavors/{quote(change.id)}/os-extra_specs/{quote(change.key)}"
            api.nova("DELETE", path)
        case RecordKeys():
            body = {"flavor": {"description": change.description}}
            api.nova("PUT", f"/flavors/{quote(change.id)}", body)
        case _:
            raise NotImplementedError(repr(change))


def _create(api: API, change: CreateFlavor) -> None:
    flavor = change.flavor
    body = {
        "name": flavor.name,
        "description": change.description,
        "vcpus": flavor.vcpus,
        "ram": flavor.memory_mb,
        "disk": flavor.root_gb,
    }
    with openstack_errors():
        made = api.nova("POST", "/flavors", {"flavor": body}, key="flavor")["id"]
    try:
        _set_specs(api, made, flavor.extra_specs)
    except BaseException:
        # A flavor without its extra specs would let users bypass the policy.  Ctrl-C
        # leaves none either.
        api.nova("DELETE", f"/flavors/{quote(made)}")
        raise


def _set_specs(api: API, flavor: str, extra_specs: Mapping[str, str]) -> None:
    path = f"/flavors/{quote(flavor)}/os-extra_specs"
    try:
        api.nova("POST", path, {"extra_specs": dict(extra_specs)})
    except CloudError as exc:
        if exc.status != 400:
            raise
        raise CloudError(
            f"{exc}; does nova-api have this policy (compare the hash of openstack "
            "perfvm policy show), and was it restarted since?",
            400,
        ) from exc
