# SPDX-License-Identifier: Apache-2.0
"""Servers of the in-process cloud, and what can be done to them."""

from __future__ import annotations

import dataclasses
import itertools
from concurrent import futures
from typing import TYPE_CHECKING, Any

from nova import utils
from nova.tests.functional.api.client import OpenStackApiNotFoundException

from nova_perfvm.sandbox.processes import waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Nova's own functional tests look every 0.5 s; here most waits are shorter.  A
# look through the API costs 40 ms of CPU, so the databases are asked first.
POLL_S = 0.05
# It ends a wait that would last for ever; a starved machine needs minutes.
PATIENCE_S = 900
# What a request says, and by which microversion, without and with force.
_FORCE = ({}, {"force": True})
_FORCED = (None, "2.67")
# A server that was stopped stays so.
AS_BEFORE = ("ACTIVE", "SHUTOFF")


@dataclasses.dataclass(frozen=True)
class BootedServer:
    """A server as the API shows it.

    :ivar status: ACTIVE, ERROR, VERIFY_RESIZE...
    :ivar host: the hypervisor it is on, None if on none
    :ivar flavor: the name of its flavor
    :ivar fault: the message of its last fault, "" without one
    """

    id: str
    name: str
    status: str
    host: str | None
    flavor: str
    fault: str = ""


class ActionFailedError(Exception):
    """An action on a server ended in an error.

    :ivar server: the Server as it is after that
    :ivar detail: what Nova recorded in the action's events
    """

    def __init__(self, action: Any, server: BootedServer, detail: str) -> None:
        self.server = server
        self.detail = detail
        super().__init__(f"{action} of {server.name}: {detail}")


class ServerOperations:
    """Create, move and delete servers; every call waits for the end.

    :param api: an administrator's client of Nova's API
    :param allocations: gives what Placement has allocated to a server
    :param states: gives (vm_state, task_state) of a server from the databases
    :param network: id of the network that servers get an interface on
    """

    def __init__(
        self,
        api: Any,
        allocations: Callable[[str], Any],
        states: Callable[[str], list[tuple[str, str | None]]],
        network: str,
    ) -> None:
        self._api = api
        self._allocations = allocations
        self._states = states
        self._network = network
        self._numbers = itertools.count(1)

    def boot(
        self,
        flavor: str,
        *,
        image: str,
        name: str | None = None,
        from_volume: bool | None = None,
        host: str | None = None,
        az: str | None = None,
        count: int = 1,
        properties: dict[str, Any] | None = None,
        hints: dict[str, Any] | None = None,
    ) -> Any:
        """Create servers and wait until each is ACTIVE or ERROR.

        :param flavor: name of the flavor
        :param image: id of the image
        :param from_volume: whether Cinder makes a root volume of the image;
            without it, as the flavor's root disk of 0 GB says
        :param host: requested destination (microversion 2.74): filters run
        :param az: availability zone; ``zone:host`` skips the filters
        :param count: how many in one request
        :param properties: further members of the request's ``server``
        :param hints: the request's ``os:scheduler_hints``
        :returns: a Server, or a list of them if count is not 1
        """
        if from_volume is None:
            from_volume = self._api.get_flavor(flavor)["disk"] == 0
        request = {
            "name": name or f"vm{next(self._numbers)}",
            "flavorRef": flavor,
            "networks": [{"uuid": self._network}],
        } | (_volume_of(image) if from_volume else {"imageRef": image})
        if host is not None:
            request["host"] = host
        if az is not None:
            request["availability_zone"] = az
        if count != 1:
            request |= {"max_count": count, "min_count": count}
            request["return_reservation_id"] = True
        request |= properties or {}
        ids = self._post({"server": request, "os:scheduler_hints": hints or {}})
        servers = [self._built(server_id) for server_id in ids]
        return servers[0] if count == 1 else servers

    def show(self, server: BootedServer) -> BootedServer:
        """Return the Server as it is now."""
        return _server(self._api.get_server(server.id))

    def delete(self, server: BootedServer) -> None:
        """Delete it, and wait until nothing of it is left."""
        self._api.delete_server(server.id)
        until(lambda: self._gone(server), f"{server.name} deleted")

    def cold_migrate(
        self, server: BootedServer, host: str | None = None
    ) -> BootedServer:
        """Migrate to another host, up to VERIFY_RESIZE."""
        body = {"migrate": {"host": host} if host else None}
        return self.act(server, body, "VERIFY_RESIZE")

    def resize(self, server: BootedServer, flavor: str) -> BootedServer:
        """Resize to another flavor, up to VERIFY_RESIZE."""
        body = {"resize": {"flavorRef": flavor}}
        return self.act(server, body, "VERIFY_RESIZE")

    def confirm(self, server: BootedServer) -> BootedServer:
        """Confirm a cold migration or a resize."""
        return self.act(server, {"confirmResize": None}, *AS_BEFORE)

    def revert(self, server: BootedServer) -> BootedServer:
        """Go back from a cold migration or a resize."""
        return self.act(server, {"revertResize": None}, *AS_BEFORE)

    def live_migrate(
        self, server: BootedServer, host: str | None = None, *, force: bool = False
    ) -> BootedServer:
        """Migrate to another host while it runs.

        :param force: ask no filter, as microversions before 2.68 can
        """
        request = {"host": host, "block_migration": "auto"} | _FORCE[force]
        body = {"os-migrateLive": request}
        self.act(server, body, "ACTIVE", microversion=_FORCED[force])
        return self._migrated(server, "completed")

    def evacuate(
        self, server: BootedServer, host: str | None = None, *, force: bool = False
    ) -> BootedServer:
        """Build it again elsewhere; its host must be down.

        Ends SHUTOFF: from microversion 2.95 on nothing is started.

        :param force: ask no filter, as microversions before 2.68 can; a server that
            was ACTIVE ends so then
        """
        body = {"evacuate": ({"host": host} if host else {}) | _FORCE[force]}
        self.act(server, body, *AS_BEFORE, microversion=_FORCED[force])
        return self._migrated(server, "done")

    def shelve(self, server: BootedServer, action: str = "shelve") -> BootedServer:
        """Shelve and offload it, until it is on no host.

        :param action: ``shelveOffload`` of one that was shelved and is on its host
        """
        self.act(server, {action: None}, "SHELVED_OFFLOADED")

        def look() -> Any:
            # Nova says SHELVED_OFFLOADED before it forgets the host
            shown = self.show(server)
            return None if shown.host else shown

        return until(look, f"{server.name} on no host")

    def unshelve(self, server: BootedServer, host: str | None = None) -> BootedServer:
        """Bring an offloaded server back, on any host or on one."""
        body = {"unshelve": {"host": host} if host else None}
        return self.act(server, body, "ACTIVE")

    def rebuild(self, server: BootedServer, image: str) -> BootedServer:
        """Write another image onto its root disk."""
        return self.act(server, {"rebuild": {"imageRef": image}}, *AS_BEFORE)

    def _post(self, body: dict[str, Any]) -> list[str]:
        answer = self._api.api_post("/servers", body).body
        if "reservation_id" not in answer:
            return [answer["server"]["id"]]
        query = f"/servers?reservation_id={answer['reservation_id']}"
        found = self._api.api_get(query).body["servers"]
        return sorted(server["id"] for server in found)

    def _settled(self, server_id: str) -> bool:
        """Tell whether Nova has a server, and is at nothing with it."""
        states = self._states(server_id)
        return bool(states) and all(not task or vm == "error" for vm, task in states)

    def _built(self, server_id: str) -> BootedServer:
        def look() -> Any:
            if not self._settled(server_id):
                return None
            shown = self._api.get_server(server_id)
            # Nova sets ERROR before it records the fault.
            built = shown["status"] == "ACTIVE" or "fault" in shown
            return _server(shown) if built else None

        return until(look, f"server {server_id} built")

    def _gone(self, server: BootedServer) -> bool:
        if self._states(server.id):
            return False
        try:
            self._api.get_server(server.id)
        except OpenStackApiNotFoundException:
            # The compute gives back first the CPUs, then the allocations.
            return not self._allocations(server.id)
        return False

    def act(
        self,
        server: BootedServer,
        body: dict[str, Any],
        *statuses: str,
        microversion: str | None = None,
    ) -> BootedServer:
        """Do what a server action says, until the server is in one of the statuses.

        :param body: the request of Nova's API: {action: its arguments}
        :param microversion: asks for it, but not for what became of it: Nova says
            why an action failed from 2.84 on
        :raises ActionFailedError: when it ended otherwise
        """
        (action,) = body
        before = len(self._api.get_instance_actions(server.id))
        asked = microversion or self._api.microversion
        with utils.temporary_mutation(self._api, microversion=asked):
            self._api.post_server_action(server.id, body)

        def look() -> Any:
            if not self._settled(server.id):
                return None
            shown = self._api.get_server(server.id)
            done = self._action(server, before)
            if shown["OS-EXT-STS:task_state"] is not None or done is None:
                return None
            if done["message"] == "Error" or shown["status"] == "ERROR":
                raise ActionFailedError(action, _server(shown), _detail(done))
            return _server(shown) if shown["status"] in statuses else None

        return until(look, f"{action} of {server.name}: {' or '.join(statuses)}")

    def _migrated(self, server: BootedServer, status: str) -> BootedServer:
        """Wait for a migration: it ends after the action that started it."""

        def look() -> Any:
            query = f"/os-migrations?instance_uuid={server.id}"
            (newest, *_) = self._api.api_get(query).body["migrations"]
            if newest["status"] in {"error", "failed"}:
                raise ActionFailedError("migration", self.show(server), "failed")
            # A live migration is "completed" before its source gives back what the
            # migration held there.
            ended = newest["status"] == status and not self._allocations(newest["uuid"])
            return ended and self.show(server)

        return until(look, f"migration of {server.name}: {status}")

    def _action(self, server: BootedServer, before: int) -> dict[str, Any] | None:
        """Return the action after the first ``before`` once all of it ended."""
        actions = self._api.get_instance_actions(server.id)
        if len(actions) == before:
            return None
        # The newest is the first. Its id is not that of the answer's header:
        # Nova's fixture makes a new one on the way.
        request_id = actions[0]["request_id"]
        done = self._api.get_instance_action_details(server.id, request_id)
        ended = [event["finish_time"] for event in done["events"]]
        return done if ended and all(ended) else None


def _detail(action: Any) -> str:
    return "; ".join(said for event in action["events"] if (said := event["details"]))


def _volume_of(image: str) -> dict[str, Any]:
    volume = {
        "boot_index": 0,
        "uuid": image,
        "source_type": "image",
        "destination_type": "volume",
        "volume_size": 20,
        "delete_on_termination": False,
    }
    return {"block_device_mapping_v2": [volume]}


def _server(shown: dict[str, Any]) -> BootedServer:
    return BootedServer(
        id=shown["id"],
        name=shown["name"],
        status=shown["status"],
        host=shown["OS-EXT-SRV-ATTR:host"],
        flavor=shown["flavor"]["original_name"],
        fault=shown.get("fault", {}).get("message", ""),
    )


def at_once(function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
    """Call a function with all values at the same time; return what came of each.

    That is an ActionFailedError where it raised one.
    """

    def outcome(value: Any) -> Any:
        try:
            return function(value)
        except ActionFailedError as error:
            return error

    with futures.ThreadPoolExecutor(max(1, len(values))) as pool:
        return list(pool.map(outcome, values))


def until(look: Callable[[], Any], what: str) -> Any:
    """Look until there is something to see, and return that.

    :param what: what is waited for
    :raises SandboxError: if there is nothing for PATIENCE_S seconds
    """
    return waiting.until(look, what, PATIENCE_S, POLL_S)
