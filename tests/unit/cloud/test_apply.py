# SPDX-License-Identifier: Apache-2.0

import json
import time
import types
from email.utils import formatdate

import requests
import testtools

from nova_perfvm.changes import steps as do
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.apply import FORGOTTEN_S, Applier
from nova_perfvm.cloud.errors import CloudError, ConflictError

CHILD = do.DeleteChild("c", "h1_perfvm_a")


class Placement:
    """Has one provider, which somebody has changed at a moment."""

    def __init__(self, changed_at, told_at=None, parent=None, then=None):
        self.made = []
        self._parent, self._parent_then = parent, then
        self._headers = {"Last-Modified": formatdate(changed_at, usegmt=True)}
        if told_at is not None:
            self._headers["Date"] = formatdate(told_at, usegmt=True)

    def request(self, path, method, **_options):
        self.made.append(f"{method} {path}")
        response = requests.Response()
        response.status_code = 200
        response.headers.update(self._headers)
        document = {
            "uuid": "c",
            "parent_provider_uuid": self._parent,
            "generation": 7,
            "resource_provider_generation": 8,
        }
        if method == "PUT":
            self._parent = self._parent_then
        response._content = json.dumps(document).encode()
        return response


class DeleteChildTest(testtools.TestCase):
    LOOK, DELETE = "GET /resource_providers/c", "DELETE /resource_providers/c"
    CLAIM = "PUT /resource_providers/c/inventories"

    def delete(self, placement):
        Applier(API(types.SimpleNamespace(placement=placement))).apply(CHILD)

    def test_when_it_is_in_no_cache_any_more(self):
        now = time.time()
        for placement in (
            Placement(now - FORGOTTEN_S - 1),
            # By its own clock, whatever it says here.
            Placement(1000, told_at=1000 + FORGOTTEN_S),
        ):
            self.delete(placement)
            made = [self.LOOK, self.CLAIM, self.LOOK, self.DELETE]
            self.assertEqual(made, placement.made)

    def test_sooner(self):
        now = time.time()
        for placement in (
            Placement(now),
            Placement(1000, told_at=1000 + FORGOTTEN_S - 1),
        ):
            exc = self.assertRaises(CloudError, self.delete, placement)
            self.assertIn("run this again in", str(exc))
            self.assertEqual([self.LOOK], placement.made)

    def test_one_that_a_host_has_again(self):
        """Somebody enrolls the host meanwhile."""
        placement = Placement(1000, told_at=9000, parent="h1")
        self.assertRaises(ConflictError, self.delete, placement)
        self.assertEqual([self.LOOK], placement.made)

    def test_one_that_a_host_has_again_at_the_last_look(self):
        placement = Placement(1000, told_at=9000, then="h1")
        self.assertRaises(ConflictError, self.delete, placement)
        self.assertEqual([self.LOOK, self.CLAIM, self.LOOK], placement.made)
