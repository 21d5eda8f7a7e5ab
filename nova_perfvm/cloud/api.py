# SPDX-License-Identifier: Apache-2.0
"""Requests to Nova, Placement and Glance, and to Neutron, Cinder and Keystone.

Requests go through the SDK's session, but not through its resource classes.  These have
no allocations, usages or allocation candidates, and they ask for the newest
microversion that the SDK knows; this module asks for the oldest one that suffices.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from keystoneauth1 import exceptions as ksa_exceptions

from nova_perfvm.cloud.errors import CloudError, ConflictError, NotThereError
from nova_perfvm.microversions import COMPUTE, PLACEMENT, SERVERS
from nova_perfvm.printable import first_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    import requests

_NAMES: Final = {
    "compute": "Nova",
    "image": "Glance",
    "placement": "Placement",
    "network": "Neutron",
    "block_storage": "Cinder",
    "identity": "Keystone",
}
# Cinder's service types in catalogues.
_CINDER: Final = {"block-storage", "block-store", "volume", "volumev2", "volumev3"}
_MICROVERSIONS: Final = {"compute": COMPUTE, "placement": PLACEMENT}
_JSON_PATCH: Final = "application/openstack-images-v2.1-json-patch"
_PAGE: Final = 1000


def _expected() -> tuple[type[Exception], ...]:
    """Return the exceptions that keystoneauth and the SDK raise for failed requests."""
    # Imported late: commands that need no cloud import this module, and the SDK is slow
    # to import.
    from openstack import exceptions as sdk_exceptions  # noqa: PLC0415

    return (ksa_exceptions.ClientException, sdk_exceptions.SDKException)


class API:
    """The services of one cloud; safe for several threads.

    :param connection: an ``openstack.connection.Connection`` of an administrator
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        # The SDK makes each service's proxy at its first use, which is not thread-safe.
        self._proxies = threading.Lock()
        self._servers = SERVERS

    def project(self) -> str:
        """Return the ID of the credentials' project; empty if they have none.

        :raises CloudError: when Keystone answers with an error, or does not answer
        """
        try:
            return self._connection.current_project_id or ""
        except _expected() as exc:
            raise _no_answer("Keystone", exc) from exc

    def nova(self, method: str, path: str, body: Any = None, key: str = "") -> Any:
        """Send a request to Nova; return the answer, or its member `key`.

        :raises CloudError: when Nova answers with an error, or does not answer; all
            methods below raise it alike
        """
        return self._request("compute", method, path, body, key)

    def nova_list(self, path: str, key: str) -> Iterator[dict[str, Any]]:
        """Yield all members of a collection of Nova, page by page."""
        return self._pages("compute", path, key)

    def placement(self, method: str, path: str, body: Any = None, key: str = "") -> Any:
        """Send a request to Placement; return the answer, or its member `key`."""
        return self._request("placement", method, path, body, key)

    def set_parent(self, provider: str, name: str, parent: str | None) -> None:
        """Put a provider below another provider, or make it a root (`parent` None)."""
        body = {"name": name, "parent_provider_uuid": parent}
        self.placement("PUT", f"/resource_providers/{provider}", body)

    def provider_since(self, provider: str) -> tuple[dict[str, Any], float]:
        """Return a provider, and the seconds since its last change."""
        path = f"/resource_providers/{provider}"
        response = self._respond("placement", "GET", path)
        headers = response.headers
        changed = parsedate_to_datetime(headers["last-modified"])
        # Placement's own clock, if its web server sends the Date header.
        now = (
            parsedate_to_datetime(headers["date"])
            if "date" in headers
            else datetime.now(UTC)
        )
        return response.json(), (now - changed).total_seconds()

    def glance(self, method: str, path: str, body: Any = None) -> Any:
        return self._request("image", method, path, body)

    def neutron(self, method: str, path: str, body: Any = None, key: str = "") -> Any:
        return self._request("network", method, path, body, key)

    def cinder(self, method: str, path: str, body: Any = None, key: str = "") -> Any:
        return self._request("block_storage", method, path, body, key)

    def keystone(self, method: str, path: str, body: Any = None, key: str = "") -> Any:
        return self._request("identity", method, path, body, key)

    def limits(self, path: str) -> list[dict[str, Any]]:
        """Return limits of Keystone, of all projects where the user may see them.

        Keystone before 29 (keystone/api/limits.py) lists to a project's token, also an
        administrator's, only that project's limits, and to the system's token all.  A
        user without a role on the system gets what the own token shows.
        """
        from keystoneauth1.identity import Token  # noqa: PLC0415

        try:
            headers = self._connection.session.get_auth_headers() or {}
            own = headers.get("X-Auth-Token", "")
            url = self._connection.endpoint_for("identity")
            system = Token(url, own, system_scope="all")
            self._connection.session.get_auth_headers(system)
        except (ksa_exceptions.Unauthorized, ksa_exceptions.Forbidden):
            system = None
        except _expected() as exc:
            raise _no_answer("Keystone", exc) from exc
        found: list[dict[str, Any]] = self._request(
            "identity", "GET", path, key="limits", auth=system
        )
        return found

    def has_cinder(self) -> bool:
        """Return whether the catalogue lists Cinder; False without a catalogue."""
        if not hasattr(self._connection.session.auth, "get_access"):
            return False
        try:
            kinds = {service["type"] for service in self._connection.service_catalog}
        except _expected() as exc:
            raise _no_answer("Keystone", exc) from exc
        return bool(kinds & _CINDER)

    def cinder_list(self, path: str, key: str) -> Iterator[dict[str, Any]]:
        """Yield all members of a collection of Cinder; nothing without Cinder."""
        return (
            self._pages("block_storage", path, key) if self.has_cinder() else iter(())
        )

    def images(self, **query: str) -> Iterator[dict[str, Any]]:
        """Yield the images of all projects that match a query, hidden images last.

        Glance lists other projects' community images only with ``visibility=all``, and
        hidden images only in a list of their own.
        """
        given = set()
        for hidden in ({}, {"os_hidden": "true"}):
            path = f"/images?{urlencode({'visibility': 'all'} | query | hidden)}"
            for image in self._pages("image", path, "images"):
                # An image that was hidden between the two requests is in both lists.
                if image["id"] not in given:
                    given.add(image["id"])
                    yield image

    def _pages(self, service: str, path: str, key: str) -> Iterator[dict[str, Any]]:
        """Yield the members of a collection, page by page."""
        path += f"{'&' if '?' in path else '?'}limit={_PAGE}"
        marker = ""
        while True:
            answer = self._request(service, "GET", path + marker)
            page = _member(answer, f"{_NAMES[service]}: GET {path}", key)
            yield from page
            # Only pages before the last one have a link to the next page: Nova names it
            # "<key>_links", Glance "next".
            if not page or not answer.keys() & {f"{key}_links", "next"}:
                return
            # Nova pages migrations by UUID, although migrations also have an ID.  An
            # image's member "uuid" may be a property that the owner has set.
            last = page[-1]["uuid" if key == "migrations" else "id"]
            marker = f"&marker={last}"

    def _request(
        self,
        service: str,
        method: str,
        path: str,
        body: Any = None,
        key: str = "",
        auth: Any = None,
    ) -> Any:
        response = self._respond(service, method, path, body, auth)
        asked = f"{_NAMES[service]}: {method} {path}"
        if not response.content:
            return _member(None, asked, key)
        try:
            answer = response.json()
        except ValueError:
            raise _no_such_answer(asked, "JSON") from None
        return _member(answer, asked, key)

    def _respond(
        self,
        service: str,
        method: str,
        path: str,
        body: Any = None,
        auth: Any = None,
    ) -> requests.Response:
        arguments: dict[str, Any] = {} if body is None else {"json": body}
        if auth:
            arguments["auth"] = auth
        if service in _MICROVERSIONS:
            reads_servers = method == "GET" and path.startswith("/servers")
            asked = self._servers if reads_servers else _MICROVERSIONS[service]
            arguments["microversion"] = asked
        if (service, method) == ("image", "PATCH"):
            arguments["headers"] = {"Content-Type": _JSON_PATCH}
        try:
            with self._proxies:
                proxy = getattr(self._connection, service)
            response: requests.Response = proxy.request(path, method, **arguments)
        except _expected() as exc:
            raise _no_answer(_NAMES[service], exc) from exc
        if response.status_code == 406 and arguments.get("microversion") == SERVERS:
            self._servers = COMPUTE
            return self._respond(service, method, path, body)
        if response.status_code >= 400:
            raise _error(service, f"{method} {path}", response)
        return response


def _no_answer(name: str, exc: Exception) -> CloudError:
    status = getattr(exc, "http_status", 0)
    return CloudError(f"{name} does not answer: {first_line(exc)}", status)


def _error(service: str, request: str, response: requests.Response) -> CloudError:
    status = response.status_code
    name = _NAMES[service]
    asked = f"{name}: {request}: {status}"
    if status in {401, 403}:
        return CloudError(
            f"{asked}: {error_of(response)[0]}: this needs the rights of an "
            "administrator: use such credentials (--os-cloud), or let the service's "
            "policy.yaml give the rule to a role",
            status,
        )
    if status == 406 and service in _MICROVERSIONS:
        return CloudError(
            f"{name} does not know microversion {_MICROVERSIONS[service]}: the Xena "
            "release or newer is needed",
            status,
        )
    kind = {404: NotThereError, 409: ConflictError}.get(status, CloudError)
    remedy = "; see the service's log, then run this again" if status >= 500 else ""
    words, code = error_of(response)
    return kind(f"{asked}: {words}{remedy}", status, code)


def error_of(response: requests.Response) -> tuple[str, str]:
    """Return the message of an error answer, and Placement's code for the error."""
    try:
        document = response.json()
        if "errors" in document:
            (error, *_) = document["errors"]
            words, code = error["detail"], error.get("code") or ""
        else:
            # Nova nests the message below the kind of error; in Glance's answers the
            # message is a member of the document.
            nested = next(iter(document.values()))
            words, code = document.get("message") or nested["message"], ""
    except (ValueError, LookupError, TypeError, AttributeError, StopIteration):
        words, code = response.reason or "no reason given", ""
    return " ".join(str(words).split()), code


def _member(answer: Any, asked: str, key: str) -> Any:
    try:
        return answer[key] if key else answer
    except (KeyError, TypeError):
        raise _no_such_answer(asked, repr(key)) from None


def _no_such_answer(asked: str, what: str) -> CloudError:
    return CloudError(
        f"{asked}: the answer has no {what}: is the endpoint in the catalogue its own?"
    )
