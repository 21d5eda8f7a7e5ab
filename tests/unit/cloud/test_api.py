# SPDX-License-Identifier: Apache-2.0

import types

import testtools
from keystoneauth1 import exceptions as ksa_exceptions
from openstack import exceptions as sdk_exceptions

from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError, ConflictError, NotThereError
from nova_perfvm.microversions import COMPUTE, PLACEMENT, SERVERS
from tests.unit.cloud.fake_api import answer


class Proxy:
    """A service that gives prepared answers and keeps the requests."""

    def __init__(self, *answers):
        self.requests = []
        self._answers = list(answers)

    def request(self, url, method, **kwargs):
        self.requests.append((method, url, kwargs))
        found = self._answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


def placement_error(status, detail):
    return answer(status, {"errors": [{"status": status, "detail": detail}]})


class APITest(testtools.TestCase):
    def api(self, *answers):
        self.proxy = Proxy(*answers)
        return API(
            types.SimpleNamespace(
                compute=self.proxy, image=self.proxy, placement=self.proxy
            )
        )

    def test_project(self):
        for project, expected in (("p", "p"), (None, "")):
            connection = types.SimpleNamespace(current_project_id=project)
            self.assertEqual(expected, API(connection).project())

        class Rejected:
            @property
            def current_project_id(self):
                raise ksa_exceptions.ConnectFailure("no route")

        exc = self.assertRaises(CloudError, API(Rejected()).project)
        self.assertIn("Keystone does not answer: no route", str(exc))

    def test_pages(self):
        for key, last, marker in (
            ("servers", {"id": "1"}, "1"),
            ("migrations", {"id": 7, "uuid": "u"}, "u"),
        ):
            api = self.api(
                answer(body={key: [last], f"{key}_links": [{}]}),
                answer(body={key: [{"id": "2"}]}),
            )
            self.assertEqual([last, {"id": "2"}], list(api.nova_list("/x?a=b", key)))
            self.assertEqual(
                ["/x?a=b&limit=1000", f"/x?a=b&limit=1000&marker={marker}"],
                [url for _, url, _ in self.proxy.requests],
            )

    def test_pages_of_images(self):
        proxy = Proxy(
            answer(body={"images": [{"id": "1"}], "next": "/v2/images?marker=1"}),
            answer(body={"images": [{"id": "2"}]}),
            # Hidden since the first list.
            answer(body={"images": [{"id": "2"}, {"id": "3"}]}),
        )
        api = API(types.SimpleNamespace(image=proxy))
        found = [image["id"] for image in api.images(tag="a:b")]
        self.assertEqual(["1", "2", "3"], found)
        asked = "/images?visibility=all&tag=a%3Ab"
        self.assertEqual(
            [
                f"{asked}&limit=1000",
                f"{asked}&limit=1000&marker=1",
                f"{asked}&os_hidden=true&limit=1000",
            ],
            [url for _, url, _ in proxy.requests],
        )

    def test_errors_say_what_to_do(self):
        refused = ksa_exceptions.ConnectFailure("refused\nlong")
        no_region = sdk_exceptions.ConfigException("no region")
        for given, expected, words in (
            (placement_error(403, "no"), CloudError, "rights of an administrator"),
            (answer(401), CloudError, "rights of an administrator"),
            (placement_error(404, "no such"), NotThereError, "404: no such"),
            (placement_error(406, "x"), CloudError, f"microversion {PLACEMENT}"),
            (placement_error(409, "in\nuse"), ConflictError, "409: in use"),
            (answer(400, {"badRequest": {"message": "bad"}}), CloudError, "400: bad"),
            (answer(503, text="<html>"), CloudError, "a reason; see the service's log"),
            (answer(text="<html>"), CloudError, "has no JSON"),
            (answer(body={}), CloudError, "has no 'a'"),
            (answer(body=[]), CloudError, "has no 'a'"),
            (ksa_exceptions.EndpointNotFound(), CloudError, "does not answer: "),
            (ksa_exceptions.Unauthorized(), CloudError, "does not answer: "),
            (refused, CloudError, "does not answer: refused"),
            (no_region, CloudError, "does not answer: no region"),
        ):
            api = self.api(given)
            exc = self.assertRaises(expected, api.placement, "GET", "/x", key="a")
            self.assertIn(words, str(exc))
            self.assertNotIn("\n", str(exc))
        # A mistake of our own is not hidden.
        api = self.api(ZeroDivisionError())
        self.assertRaises(ZeroDivisionError, api.nova, "GET", "/x")

    def test_servers_of_a_nova_that_is_older(self):
        body = {"servers": [{"id": "1"}]}
        api = self.api(answer(body=body), answer(406), answer(body=body), answer())
        for _ in range(2):
            self.assertEqual(body, api.nova("GET", "/servers/detail"))
        api.nova("GET", "/servers/1")
        asked = [given["microversion"] for *_, given in self.proxy.requests]
        self.assertEqual([SERVERS, SERVERS, COMPUTE, COMPUTE], asked)

    def test_what_each_service_is_asked(self):
        api = self.api(answer(body={"a": 1}), answer(204), answer(body={}))
        self.assertEqual(1, api.placement("GET", "/x", key="a"))
        self.assertIsNone(api.nova("PUT", "/y", {"b": 2}))
        api.glance("PATCH", "/images/1", [])
        kind = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
        self.assertEqual(
            [
                ("GET", "/x", {"microversion": PLACEMENT}),
                ("PUT", "/y", {"microversion": COMPUTE, "json": {"b": 2}}),
                # Glance has no microversions.
                ("PATCH", "/images/1", {"json": [], "headers": kind}),
            ],
            self.proxy.requests,
        )
