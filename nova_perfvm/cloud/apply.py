# SPDX-License-Identifier: Apache-2.0
"""Carry out planned steps: the requests of each step."""

from __future__ import annotations

from dataclasses import asdict
from functools import singledispatchmethod
from typing import Any, Final

from nova_perfvm.changes import steps as do
from nova_perfvm.cloud import answers
from nova_perfvm.cloud.allocate import allocate, realign, remove_units
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import (
    CloudError,
    ConflictError,
    NotThereError,
    openstack_errors,
)
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import DISABLED_REASON, Aggregate

# nova-compute reads the provider tree of its host again after 300 s
# ([compute]resource_provider_association_refresh).  One more minute covers an update
# that nova-compute had begun with the old tree.
FORGOTTEN_S: Final = 360


class Applier:
    """Carries out the steps that were planned on one view of a host.

    Placement accepts a change of a provider only with the provider's current
    generation.  The first change uses the generation of the view, and each later change
    the generation that the previous change returned.  So Placement refuses a step if
    somebody else has changed the provider meanwhile.

    :param view: the view on which the steps were planned; None for steps that change no
        provider
    """

    def __init__(self, api: API, view: HostView | None = None) -> None:
        self._api = api
        self._view = view
        seen = (*view.tree, *view.detached, *view.strayed) if view else ()
        self._generations = {p.uuid: p.generation for p in seen}

    @openstack_errors()
    def apply(self, change: do.Change) -> None:
        """Make one change.

        :raises ConflictError: when the cloud has changed since the step was planned
        :raises CloudError: when the request is refused
        """
        try:
            self._apply(change)
        except NotThereError as exc:
            # The object existed when the plan was made, so somebody has deleted it
            # since.
            raise ConflictError(str(exc), exc.status) from exc

    @singledispatchmethod
    def _apply(self, change: do.Change) -> None:
        raise NotImplementedError(repr(change))

    @_apply.register
    def _(self, change: do.CreateName) -> None:
        self._api.placement("PUT", f"/{_names_path(change.kind)}/{change.name}")

    @_apply.register
    def _(self, change: do.DeleteName) -> None:
        path = f"/{_names_path(change.kind)}/{change.name}"
        try:
            self._api.placement("DELETE", path)
        except NotThereError:
            return
        except ConflictError as exc:
            raise CloudError(
                f"{change.kind} {change.name} is still in use and is kept: {exc}"
            ) from exc

    @_apply.register
    def _(self, change: do.CreateAggregate) -> None:
        body = {"aggregate": {"name": change.name}}
        try:
            self._api.nova("POST", "/os-aggregates", body)
        except CloudError as exc:
            # If two clients create the aggregate at the same moment, Nova answers one
            # with 500 (DBDuplicateEntry); a client that comes later gets 409.
            if exc.status not in {409, 500}:
                raise
            try:
                self._aggregate(change.name)
            except NotThereError:
                raise exc from None
            raise ConflictError(f"aggregate {change.name} exists", 409) from exc

    @_apply.register
    def _(self, change: do.IsolateAggregate) -> None:
        self._change_aggregate(
            change.name, {"set_metadata": {"metadata": change.metadata}}
        )

    @_apply.register
    def _(self, change: do.AddHost) -> None:
        self._change_aggregate(change.name, {"add_host": {"host": change.host}})

    @_apply.register
    def _(self, change: do.RemoveHost) -> None:
        self._change_aggregate(change.name, {"remove_host": {"host": change.host}})

    @_apply.register
    def _(self, change: do.DeleteAggregate) -> None:
        found = self._aggregate(change.name)
        if found.hosts:
            raise ConflictError(f"aggregate {change.name} has a host again", 409)
        try:
            self._api.nova("DELETE", f"/os-aggregates/{found.id}")
        except CloudError as exc:
            # Nova answers 400 when a host was added to the aggregate meanwhile.
            if exc.status == 400:
                raise ConflictError(str(exc), 400) from exc
            raise

    @_apply.register
    def _(self, change: do.SetProviderAggregates) -> None:
        body = {"aggregates": sorted(change.aggregates)}
        self._put(change.uuid, "aggregates", body)

    @_apply.register
    def _(self, change: do.SetService) -> None:
        status = "enabled" if change.enabled else "disabled"
        body = {"status": status}
        if not change.enabled:
            body["disabled_reason"] = DISABLED_REASON
        self._api.nova("PUT", f"/os-services/{change.id}", body)

    @_apply.register
    def _(self, change: do.CreateChild) -> None:
        body = {
            "name": change.name,
            "uuid": change.uuid,
            "parent_provider_uuid": change.parent,
        }
        made = self._api.placement("POST", "/resource_providers", body)
        self._generations[change.uuid] = made["generation"]

    @_apply.register
    def _(self, change: do.AdoptChild) -> None:
        self._api.set_parent(change.uuid, change.name, change.parent)

    @_apply.register
    def _(self, change: do.DetachChild) -> None:
        """Check the generation ourselves: Placement asks for none to set a parent."""
        found = self._provider(change.uuid)
        parent = found["parent_provider_uuid"]
        if parent is None:
            return
        if found["generation"] != self._generations[change.uuid]:
            raise ConflictError(f"provider {change.name} is being changed", 409)
        self._api.set_parent(change.uuid, change.name, None)
        try:
            # This request increases the provider's generation: Placement refuses later
            # changes by clients that read the provider while it was in the tree.
            self._put(change.uuid, "inventories", {"inventories": {}})
        except ConflictError:
            found = self._provider(change.uuid)
            if not answers.provider(self._api, found).detached:
                self._api.set_parent(change.uuid, change.name, parent)
            raise

    @_apply.register
    def _(self, change: do.SetTraits) -> None:
        self._put(change.uuid, "traits", {"traits": sorted(change.traits)})

    @_apply.register
    def _(self, change: do.SetInventory) -> None:
        body = {
            "inventories": {n: asdict(found) for n, found in change.inventories.items()}
        }
        self._put(change.uuid, "inventories", body)

    @_apply.register
    def _(self, change: do.DeleteChild) -> None:
        """Increase the provider's generation, check its parent, and delete it.

        Placement does not delete a provider with allocations or children, but asks for
        no generation.  One race remains: an enroll may put the child below its host
        between the check and the deletion.  That enroll then creates the child again;
        only a nova-compute that reads its tree at this moment misses the child, for
        five minutes.
        """
        found, age_s = self._api.provider_since(change.uuid)
        self._expect_detached(change, found)
        if age_s < FORGOTTEN_S:
            raise CloudError(
                f"nova-compute may still know provider {change.name}, which was "
                f"detached from its host {age_s:.0f} s ago: run this again in "
                f"{FORGOTTEN_S - age_s:.0f} s"
            )
        self._generations.setdefault(change.uuid, found["generation"])
        self._put(change.uuid, "inventories", {"inventories": {}})
        self._expect_detached(change, self._provider(change.uuid))
        self._api.placement("DELETE", f"/resource_providers/{change.uuid}")
        self._generations.pop(change.uuid, None)

    @_apply.register
    def _(self, change: do.Allocate) -> None:
        if self._view is None:
            raise AssertionError(f"planned on no host: {change!r}")
        allocate(
            self._api, change, answers.allocation(self._api, change.server), self._view
        )

    @_apply.register
    def _(self, change: do.RemoveUnits) -> None:
        remove_units(self._api, change)

    @_apply.register
    def _(self, change: do.Realign) -> None:
        if self._view is None:
            raise AssertionError(f"planned on no host: {change!r}")
        realign(self._api, change, self._view)

    def _provider(self, uuid: str) -> dict[str, Any]:
        found: dict[str, Any] = self._api.placement(
            "GET", f"/resource_providers/{uuid}"
        )
        return found

    def _expect_detached(self, change: do.DeleteChild, found: dict[str, Any]) -> None:
        if found["parent_provider_uuid"]:
            raise ConflictError(f"provider {change.name} is below a host again", 409)

    def _put(self, provider: str, what: str, body: dict[str, Any]) -> None:
        path = f"/resource_providers/{provider}/{what}"
        body["resource_provider_generation"] = self._generations[provider]
        answer = self._api.placement("PUT", path, body)
        self._generations[provider] = answer["resource_provider_generation"]

    def _aggregate(self, name: str) -> Aggregate:
        for found in answers.aggregates(self._api):
            if found.name == name:
                return found
        raise NotThereError(f"no aggregate {name}", 404)

    def _change_aggregate(self, name: str, body: dict[str, Any]) -> None:
        number = self._aggregate(name).id
        self._api.nova("POST", f"/os-aggregates/{number}/action", body)


def _names_path(kind: str) -> str:
    """Return the collection of Placement that has the names of a kind."""
    return "traits" if kind == "trait" else "resource_classes"
