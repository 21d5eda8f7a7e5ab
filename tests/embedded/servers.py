# SPDX-License-Identifier: Apache-2.0
"""What can be done to servers of the in-process cloud."""

from concurrent import futures

from nova import utils
from nova.tests.functional.api.client import OpenStackApiNotFoundException

from tests.cloud.servers import Servers, server_of, until

# What a request says, and by which microversion, without and with force.
_FORCE = ({}, {"force": True})
_FORCED = (None, "2.67")
# A server that was stopped stays so.
AS_BEFORE = ("ACTIVE", "SHUTOFF")


class ActionFailedError(Exception):
    """An action on a server ended in an error.

    :ivar server: the Server as it is after that
    :ivar detail: what Nova recorded in the action's events
    """

    def __init__(self, action, server, detail):
        self.server = server
        self.detail = detail
        super().__init__(f"{action} of {server.name}: {detail}")


class ServerOperations(Servers):
    """Create, move and delete servers; every call waits for the end.

    :param allocations: gives what Placement has allocated to a server
    """

    def __init__(self, api, states, allocations):
        super().__init__(api, states)
        self._allocations = allocations

    def delete(self, server):
        """Delete it, and wait until nothing of it is left."""
        self._api.delete_server(server.id)
        until(lambda: self._gone(server), f"{server.name} deleted")

    def cold_migrate(self, server, host=None):
        """Migrate to another host, up to VERIFY_RESIZE."""
        body = {"migrate": {"host": host} if host else None}
        return self.act(server, body, "VERIFY_RESIZE")

    def resize(self, server, flavor):
        """Resize to another flavor, up to VERIFY_RESIZE."""
        body = {"resize": {"flavorRef": flavor}}
        return self.act(server, body, "VERIFY_RESIZE")

    def confirm(self, server):
        """Confirm a cold migration or a resize."""
        return self.act(server, {"confirmResize": None}, *AS_BEFORE)

    def revert(self, server):
        """Go back from a cold migration or a resize."""
        return self.act(server, {"revertResize": None}, *AS_BEFORE)

    def live_migrate(self, server, host=None, *, force=False):
        """Migrate to another host while it runs.

        :param force: ask no filter, as microversions before 2.68 can
        """
        request = {"host": host, "block_migration": "auto"} | _FORCE[force]
        body = {"os-migrateLive": request}
        self.act(server, body, "ACTIVE", microversion=_FORCED[force])
        return self._migrated(server, "completed")

    def evacuate(self, server, host=None, *, force=False):
        """Build it again elsewhere; its host must be down.

        Ends SHUTOFF: from microversion 2.95 on nothing is started.

        :param force: ask no filter, as microversions before 2.68 can; a server that
            was ACTIVE ends so then
        """
        body = {"evacuate": ({"host": host} if host else {}) | _FORCE[force]}
        self.act(server, body, *AS_BEFORE, microversion=_FORCED[force])
        return self._migrated(server, "done")

    def shelve(self, server, action="shelve"):
        """Shelve and offload it, until it is on no host.

        :param action: ``shelveOffload`` of one that was shelved and is on its host
        """
        self.act(server, {action: None}, "SHELVED_OFFLOADED")

        def look():
            # Nova says SHELVED_OFFLOADED before it forgets the host
            shown = self.show(server)
            return None if shown.host else shown

        return until(look, f"{server.name} on no host")

    def unshelve(self, server, host=None):
        """Bring an offloaded server back, on any host or on one."""
        body = {"unshelve": {"host": host} if host else None}
        return self.act(server, body, "ACTIVE")

    def rebuild(self, server, image):
        """Write another image onto its root disk."""
        return self.act(server, {"rebuild": {"imageRef": image}}, *AS_BEFORE)

    def _gone(self, server):
        if self._states(server.id):
            return False
        try:
            self._api.get_server(server.id)
        except OpenStackApiNotFoundException:
            # The compute gives back first the CPUs, then the allocations.
            return not self._allocations(server.id)
        return False

    def act(self, server, body, *statuses, microversion=None):
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

        def look():
            if not self._settled(server.id):
                return None
            shown = self._api.get_server(server.id)
            done = self._action(server, before)
            if shown["OS-EXT-STS:task_state"] is not None or done is None:
                return None
            if done["message"] == "Error" or shown["status"] == "ERROR":
                raise ActionFailedError(action, server_of(shown), _detail(done))
            return server_of(shown) if shown["status"] in statuses else None

        return until(look, f"{action} of {server.name}: {' or '.join(statuses)}")

    def _migrated(self, server, status):
        """Wait for a migration: it ends after the action that started it."""

        def look():
            query = f"/os-migrations?instance_uuid={server.id}"
            (newest, *_) = self._api.api_get(query).body["migrations"]
            if newest["status"] in {"error", "failed"}:
                raise ActionFailedError("migration", self.show(server), "failed")
            # A live migration is "completed" before its source gives back what the
            # migration held there.
            ended = newest["status"] == status and not self._allocations(newest["uuid"])
            return ended and self.show(server)

        return until(look, f"migration of {server.name}: {status}")

    def _action(self, server, before):
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


def _detail(action):
    return "; ".join(said for event in action["events"] if (said := event["details"]))


def at_once(function, values):
    """Call a function with all values at the same time; return what came of each.

    That is an ActionFailedError where it raised one.
    """

    def outcome(value):
        try:
            return function(value)
        except ActionFailedError as error:
            return error

    with futures.ThreadPoolExecutor(max(1, len(values))) as pool:
        return list(pool.map(outcome, values))
