# SPDX-License-Identifier: Apache-2.0

import time
import types
from email.utils import formatdate

import testtools

from nova_perfvm.changes import steps as do
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.apply import FORGOTTEN_S, Applier
from nova_perfvm.cloud.errors import CloudError, ConflictError
from tests.unit.cloud.fake_api import answer

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
        document = {
            "uuid": "c",
            "parent_provider_uuid": self._parent,
            "generation": 7,
            "resource_provider_generation": 8,
        }
        if method == "PUT":
            self._parent = self._parent_then
        return answer(body=document, headers=self._headers)


class DeleteChildTest(testtools.TestCase):
    LOOK, DELETE = "GET /resource_providers/c", "DELETE /resource_providers/c"
    CLAIM = "PUT /resource_providers/c/inventories"

    def test_only_one_that_no_cache_and_no_host_has(self):
        now = time.time()
        looked = [self.LOOK]
        claimed = [self.LOOK, self.CLAIM, self.LOOK]
        forgotten = 1000 + FORGOTTEN_S
        for placement, error, made in (
            (Placement(now - FORGOTTEN_S - 1), None, [*claimed, self.DELETE]),
            # By its own clock, whatever it says here.
            (Placement(1000, forgotten), None, [*claimed, self.DELETE]),
            (Placement(now), CloudError, looked),
            (Placement(1000, forgotten - 1), CloudError, looked),
            # Somebody enrolls the host meanwhile, or at the last look.
            (Placement(1000, 9000, parent="h1"), ConflictError, looked),
            (Placement(1000, 9000, then="h1"), ConflictError, claimed),
        ):
            applier = Applier(API(types.SimpleNamespace(placement=placement)))
            if error is None:
                applier.apply(CHILD)
            else:
                exc = self.assertRaises(error, applier.apply, CHILD)
                if error is CloudError:
                    self.assertIn("run this again in", str(exc))
            self.assertEqual(made, placement.made)
