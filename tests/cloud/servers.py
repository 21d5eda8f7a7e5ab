# SPDX-License-Identifier: Apache-2.0
"""Servers of the in-process cloud, and how long to wait for them."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

from nova.tests import fixtures as nova_fixtures

from tests.processes import waiting

if TYPE_CHECKING:
    from collections.abc import Callable

# Nova's own functional tests look every 0.5 s; here most waits are shorter.  A
# look through the API costs 40 ms of CPU, so the databases are asked first.
POLL_S = 0.05
# It ends a wait that would last for ever; a starved machine needs minutes.
PATIENCE_S = 900
# Servers get an interface on it.
_NETWORK = nova_fixtures.NeutronFixture.network_1["id"]


@dataclasses.dataclass(frozen=True)
class BootedServer:
    """A server as the API shows it.

    :ivar status: ACTIVE, ERROR, VERIFY_RESIZE...
    :ivar host: the hypervisor it is on, None if on none
    :ivar flavor: the name of its flavor
    :ivar fault: the message of its last fault, "" without one
    :ivar traceback: where Nova failed, "" if Nova does not say
    """

    id: str
    name: str
    status: str
    host: str | None
    flavor: str
    fault: str = ""
    traceback: str = ""


class Servers:
    """Create servers, and wait for the end.

    :param api: an administrator's client of Nova's API
    :param states: gives (vm_state, task_state) of a server from the databases
    """

    def __init__(
        self, api: Any, states: Callable[[str], list[tuple[str, str | None]]]
    ) -> None:
        self._api = api
        self._states = states
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
            "networks": [{"uuid": _NETWORK}],
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
        return server_of(self._api.get_server(server.id))

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
            return server_of(shown) if built else None

        return until(look, f"server {server_id} built")


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


def server_of(shown: dict[str, Any]) -> BootedServer:
    """Return a server as Nova's API shows it."""
    return BootedServer(
        id=shown["id"],
        name=shown["name"],
        status=shown["status"],
        host=shown["OS-EXT-SRV-ATTR:host"],
        flavor=shown["flavor"]["original_name"],
        fault=shown.get("fault", {}).get("message", ""),
        traceback=shown.get("fault", {}).get("details", ""),
    )


def until(look: Callable[[], Any], what: str) -> Any:
    """Look until there is something to see, and return that.

    :param what: what is waited for
    :raises SandboxError: if there is nothing for PATIENCE_S seconds
    """
    return waiting.until(look, what, PATIENCE_S, POLL_S)
