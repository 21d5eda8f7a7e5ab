# SPDX-License-Identifier: Apache-2.0
"""Requests to Nova, Placement and Glance.

Through the SDK's session, but not its resources: it has no allocations,
usages or candidates, and for the rest the oldest version that will do is
better than the newest that an SDK knows.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from keystoneauth1 import exceptions as ksa_exceptions

from nova_perfvm.cloud.errors import (
    CloudError,
    ConflictError,
    NotThereError,
    TooOldError,
)
from nova_perfvm.microversions import COMPUTE, EXTRA_SPECS, PLACEMENT, PLACEMENT_PARENT
from nova_perfvm.printable import first_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    import requests

_NAMES: Final = {"compute": "Nova", "image": "Glance", "placement": "Placement"}
_JSON_PATCH: Final = "application/openstack-images-v2.1-json-patch"
_PAGE: Final = 1000


class API:
    """Nova, Placement and Glance of one cloud.

    Several threads may use it at a time.

    :param connection: an ``openstack.connection.Connection`` of an administrator
    """

    def __init__(self, connection: Any) -> None:
        """Make no request yet."""
        self._connection = connection
        self._knows_ussuri = True
        # The SDK makes a proxy when it is first asked for, and is no good at being
        # asked by several threads then.
        self._proxies = threading.Lock()

    def project(self) -> str:
        """Return the ID of the project of the credentials, empty if they have none.

        :raises CloudError: when the answer is an error, or is none
        """
        try:
            return self._connection.current_project_id or ""
        except Exception as exc:
            if not _is_expected(exc):
                raise
            raise _no_answer("Keystone", exc) from exc

    def nova(self, method: str, path: str, body: Any = None, key: str = "") -> Any:
        """Make a request to Nova; return the answer, or one member of it.

        :raises CloudError: when the answer is an error, or is none; so do all below
        """
        return self._request("compute", COMPUTE, method, path, body, key)

    def nova_ussuri(self, method: str, path: str, body: Any = None) -> Any:
        """Make a request by a microversion of Ussuri, if Nova knows it.

        From there on nova-api validates extra specs, and says why an action failed.
        """
        if self._knows_ussuri:
            try:
                return self._request("compute", EXTRA_SPECS, method, path, body)
            except TooOldError:
                self._knows_ussuri = False
        return self.nova(method, path, body)

    def nova_list(
        self, path: str, key: str, marker_key: str = "id"
    ) -> Iterator[dict[str, Any]]:
        """Return all members of a collection of Nova, page by page."""
        return self._pages("compute", COMPUTE, path, (key, f"{key}_links", marker_key))

    def placement(self, method: str, path: str, body: Any = None, key: str = "") -> Any:
        """Make a request to Placement; return the answer, or one member of it."""
        return self._request("placement", PLACEMENT, method, path, body, key)

    def set_parent(self, provider: str, name: str, parent: str | None) -> Any:
        """Put a provider below another one, or below none; return it."""
        return self._request(
            "placement",
            PLACEMENT_PARENT,
            "PUT",
            f"/resource_providers/{provider}",
            {"name": name, "parent_provider_uuid": parent},
        )

    def check_set_parent(self) -> None:
        """Ask Placement whether it can give a provider another parent.

        :raises TooOldError: when it cannot
        """
        self._request("placement", PLACEMENT_PARENT, "GET", "/resource_classes")

    def provider_since(self, provider: str) -> tuple[dict[str, Any], float]:
        """Return a provider, and for how many seconds it has been as it is."""
        path = f"/resource_providers/{provider}"
        response = self._respond("placement", PLACEMENT, "GET", path)
        headers = response.headers
        changed = parsedate_to_datetime(headers["last-modified"])
        # Placement's clock, where the server before it tells the time.
        now = (
            parsedate_to_datetime(headers["date"])
            if "date" in headers
            else datetime.now(UTC)
        )
        return response.json(), (now - changed).total_seconds()

    def glance(self, method: str, path: str, key: str = "") -> Any:
        """Make a request to Glance; return the answer, or one member of it."""
        return self._request("image", None, method, path, None, key)

    def images(self, **query: str) -> Iterator[dict[str, Any]]:
        """Return the images of all projects that fit a query, hidden ones last.

        Unless asked for every visibility, Glance leaves out the community images
        of others; those that are hidden it lists only by themselves.
        """
        given = set()
        for hidden in ({}, {"os_hidden": "true"}):
            path = f"/images?{urlencode({'visibility': 'all'} | query | hidden)}"
            for image in self._pages("image", None, path, ("images", "next", "id")):
                # One that was hidden in between is in both lists.
                if image["id"] not in given:
                    given.add(image["id"])
                    yield image

    def glance_patch(self, image: str, operations: list[dict[str, Any]]) -> None:
        """Change an image, all at once or not at all.

        :param operations: a JSON patch
        """
        self._request("image", None, "PATCH", f"/images/{image}", operations)

    def _pages(
        self, service: str, microversion: str | None, path: str, keys: tuple[str, ...]
    ) -> Iterator[dict[str, Any]]:
        """Return the members of a list.

        :param keys: of the list, of what is there while there is more, and of what a
            member is called in the request of the next page
        """
        key, more, marker_key = keys
        path += f"{'&' if '?' in path else '?'}limit={_PAGE}"
        marker = ""
        while True:
            answer = self._request(service, microversion, "GET", path + marker)
            page = _member(answer, _NAMES[service], "GET", path, key)
            yield from page
            if not page or more not in answer:
                return
            marker = f"&marker={page[-1][marker_key]}"

    def _request(
        self,
        service: str,
        microversion: str | None,
        method: str,
        path: str,
        body: Any = None,
        key: str = "",
    ) -> Any:
        name = _NAMES[service]
        response = self._respond(service, microversion, method, path, body)
        if not response.content:
            return _member(None, name, method, path, key)
        try:
            answer = response.json()
        except ValueError:
            raise CloudError(
                f"{name} answers {method} {path} with something that is no JSON: is "
                "the endpoint in the catalogue its own, and its database there?",
                response.status_code,
            ) from None
        return _member(answer, name, method, path, key)

    def _respond(
        self,
        service: str,
        microversion: str | None,
        method: str,
        path: str,
        body: Any = None,
    ) -> requests.Response:
        name = _NAMES[service]
        arguments: dict[str, Any] = {} if body is None else {"json": body}
        if microversion:
            arguments["microversion"] = microversion
        if method == "PATCH":
            arguments["headers"] = {"Content-Type": _JSON_PATCH}
        try:
            with self._proxies:
                proxy = getattr(self._connection, service)
            response: requests.Response = proxy.request(path, method, **arguments)
        except Exception as exc:
            if isinstance(exc, CloudError) or not _is_expected(exc):
                raise
            raise _no_answer(name, exc) from exc
        if response.status_code >= 400:
            raise _error(name, microversion, f"{method} {path}", response)
        return response


def _is_expected(exc: Exception) -> bool:
    """Return whether the SDK or the session reports by it what a cloud did."""
    return isinstance(exc, ksa_exceptions.ClientException) or type(
        exc
    ).__module__.startswith("openstack.")


def _no_answer(name: str, exc: Exception) -> CloudError:
    if isinstance(exc, ksa_exceptions.EndpointNotFound):
        return CloudError(
            f"the cloud's catalogue has no endpoint of {name} for this region and "
            "interface: see openstack catalog list, --os-region-name, --os-interface"
        )
    if isinstance(exc, ksa_exceptions.Unauthorized):
        return CloudError(f"{name}: not authorized: check the credentials", 401)
    first = first_line(exc).rstrip(".")
    return CloudError(f"{name} does not answer: {first}; try again when it does")


def _error(
    name: str, microversion: str | None, request: str, response: requests.Response
) -> CloudError:
    status = response.status_code
    asked = f"{name}: {request}: {status}"
    if status in {401, 403}:
        return CloudError(
            f"{asked}: this needs the rights of an administrator: use such "
            "credentials (--os-cloud)",
            status,
        )
    if status == 406:
        release = "Xena" if microversion == PLACEMENT_PARENT else "Train"
        return TooOldError(
            f"{name} does not know microversion {microversion}: it needs the {release} "
            "release or newer",
            status,
        )
    kind = {404: NotThereError, 409: ConflictError}.get(status, CloudError)
    remedy = "; see its log, then run this again" if status >= 500 else ""
    return kind(f"{asked}: {_detail(response)}{remedy}", status, _code(response))


def _code(response: requests.Response) -> str:
    try:
        return str(response.json()["errors"][0]["code"])
    except (ValueError, LookupError, TypeError):
        return ""


def _detail(response: requests.Response) -> str:
    """Return what an error says in words, in whichever of three forms."""
    try:
        document = response.json()
        if "errors" in document:
            text = document["errors"][0]["detail"]
        elif "message" in document:
            text = document["message"]
        else:
            text = next(iter(document.values()))["message"]
    except (ValueError, LookupError, TypeError, AttributeError, StopIteration):
        text = response.reason or "no reason given"
    return " ".join(str(text).split())


def _member(answer: Any, name: str, method: str, path: str, key: str) -> Any:
    if not key:
        return answer
    try:
        return answer[key]
    except (KeyError, TypeError):
        raise CloudError(
            f"{name} answers {method} {path} without {key!r}: is the endpoint in the "
            "catalogue its own?"
        ) from None
