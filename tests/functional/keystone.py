# SPDX-License-Identifier: Apache-2.0
"""What stands for Keystone: its limits, and who they are of.

It answers as Keystone's v3 API does: a limit has a registered limit, of which there is
one of a name, and which stays as it is while it has limits.  To a token of a project it
lists that project's limits alone, as Keystone before 29 does (keystone/api/limits.py),
and to a token of the system all limits.
"""

import urllib.parse
import uuid

from tests.functional.service import Answering, ServiceFixture

SERVICE, REGION = "0123456789abcdef0123456789abcdef", "RegionOne"
SYSTEM_TOKEN = "token of the system"
_VALUES = {"registered_limits": "default_limit", "limits": "resource_limit"}


class Keystone(Answering):
    """Limits, and one service with one endpoint."""

    known = {}  # noqa: RUF012
    # Whether the user has a role on the system.
    on_system = True

    def do_GET(self):  # noqa: N802
        url = urllib.parse.urlparse(self.path)
        kind = url.path.strip("/").removeprefix("v3").strip("/")
        if not kind:
            here = {"rel": "self", "href": f"http://{self.headers['Host']}/v3/"}
            version = {"id": "v3.14", "status": "stable", "links": [here]}
            self.answer(300, {"versions": {"values": [version]}})
        elif kind == "limits/model":
            self.answer(200, {"model": {"name": "flat", "description": ""}})
        elif kind in self.known:
            query = urllib.parse.parse_qsl(url.query)
            found = [
                one
                for one in self.known[kind]
                if all(one.get(key, value) == value for key, value in query)
            ]
            if kind == "limits" and self.headers["X-Auth-Token"] != SYSTEM_TOKEN:
                own = self.headers["X-Auth-Project-Id"]
                found = [one for one in found if one["project_id"] == own]
            self.answer(200, {kind: found})
        else:
            # The one of an ID.
            kind, _, name = kind.partition("/")
            found = [one for one in self.known[f"{kind}"] if one["id"] == name]
            member = kind.removesuffix("s")
            self.answer(*((200, {member: found[0]}) if found else self.fault(404)))

    def do_POST(self):  # noqa: N802
        kind = self.path.rpartition("/")[2]
        if kind == "tokens":
            self.give_token(self.body()["auth"])
            return
        if self.headers["Content-Type"] != "application/json":
            self.answer(*self.fault(400))
            return
        (new,) = self.body()[kind]
        same = ("service_id", "region_id", "resource_name", "project_id")
        if any(
            all(one.get(key) == new.get(key) for key in same)
            for one in self.known[kind]
        ):
            self.answer(*self.fault(409))
        elif kind == "limits" and not self.of("registered_limits", new):
            self.answer(*self.fault(403))
        else:
            self.known[kind].append(new | {"id": uuid.uuid4().hex})
            self.answer(201, {kind: self.known[kind][-1:]})

    def give_token(self, asked):
        """Rescope a token to the system, for a user with a role there."""
        rescopes = asked["identity"]["methods"] == ["token"]
        if asked["scope"] != {"system": {"all": True}} or not rescopes:
            self.answer(*self.fault(400))
        elif not self.on_system or not asked["identity"]["token"]["id"]:
            self.answer(*self.fault(401))
        else:
            token = {"methods": ["token"], "expires_at": "2999-01-01T00:00:00.000000Z"}
            self.answer(201, {"token": token}, {"X-Subject-Token": SYSTEM_TOKEN})

    def do_PATCH(self):  # noqa: N802
        _, kind, name = self.path.rsplit("/", 2)
        (found,) = (one for one in self.known[kind] if one["id"] == name)
        if self.headers["Content-Type"] != "application/json":
            self.answer(*self.fault(400))
        elif kind == "registered_limits" and self.of("limits", found):
            self.answer(*self.fault(403))
        else:
            found.update(self.body()[kind.removesuffix("s")])
            self.answer(200, {kind.removesuffix("s"): found})

    def of(self, kind, limit):
        """Return the limits on the same resource."""
        name = limit["resource_name"]
        return [one for one in self.known[kind] if one["resource_name"] == name]

    @staticmethod
    def fault(status):
        return status, {"error": {"code": status, "message": "as Keystone says"}}


class KeystoneFixture(ServiceFixture):
    """Keystone at a URL, without limits yet."""

    HANDLER = Keystone

    def _setUp(self):  # noqa: N802
        super()._setUp()
        Keystone.on_system = True
        home = {"service_id": SERVICE, "region_id": REGION, "interface": "public"}
        Keystone.known = self.known = {
            "services": [{"id": SERVICE, "name": "nova", "type": "compute"}],
            "endpoints": [{"id": "e", "url": "http://nova", **home}],
            "regions": [{"id": REGION}],
            "projects": [],
            "registered_limits": [],
            "limits": [],
        }

    def values(self, kind):
        """Return the limits as {(resource, project if any): value}."""
        return {
            (one["resource_name"], one.get("project_id")): one[_VALUES[kind]]
            for one in self.known[kind]
        }
