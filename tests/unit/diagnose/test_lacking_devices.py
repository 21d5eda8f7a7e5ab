# SPDX-License-Identifier: Apache-2.0
"""A host that lacks devices is refused after few tries."""

import itertools
import types
from unittest import mock

import testtools

from nova_perfvm.diagnose import devices
from nova_perfvm.facts.snapshot.pci import LEGACY, REQUIRED, PCIPool, PCIRequest


def request(name, count, policy=LEGACY):
    specs = ({"vendor_id": name},)
    found = {"name": name, "count": count, "specs": specs, "policy": policy}
    return PCIRequest(**found, resource_class=f"CUSTOM_{name.upper()}")


def view_of(*kinds):
    """Return a host with pools of devices: (kind, NUMA node, pools, devices each)."""
    pools, tree = [], []
    for kind, node, number, count in kinds:
        for index in range(number):
            uuid = f"{kind}{node}{index}"
            pools.append(PCIPool(count, node, {"vendor_id": kind, "rp_uuid": uuid}))
            inventories = {f"CUSTOM_{kind.upper()}": None}
            tree.append(
                types.SimpleNamespace(
                    uuid=uuid, inventories=inventories, traits=frozenset()
                )
            )
    compute = types.SimpleNamespace(pci_pools=tuple(pools), cells=())
    return types.SimpleNamespace(compute=compute, tree=tree)


class LackingDevicesTest(testtools.TestCase):
    def test_the_others_are_not_tried(self):
        """a:2 and b:2 alone can be served in 136 ways each."""
        view = view_of(("a", 0, 16, 2), ("b", 0, 16, 2), ("c", 1, 1, 2))
        for _name, last, nodes in (
            ("no such device", request("d", 1), ()),
            ("too few devices", request("c", 3), ()),
            ("not near", request("c", 1, REQUIRED), (0,)),
        ):
            asked = [request("a", 2), request("b", 2), last]
            with mock.patch.object(
                devices, "_suiting", side_effect=devices._suiting
            ) as suiting:
                self.assertIsNone(devices.given(asked, view, nodes))
            self.assertLess(suiting.call_count, 10)
            self.assertIsNotNone(devices.given(asked[:2], view, nodes))

    def test_requests_that_fit_alone_only(self):
        """Placement offers millions of divisions of these devices among requests."""
        near = view_of(("a", 0, 8, 1), ("a", 1, 8, 1), ("b", 0, 8, 1))
        for name, asked, nodes, expected in (
            ("too few", [request("a", 6)] * 3, (), False),
            ("many", [request("a", 1)] * 17, (), False),
            ("enough", [request("a", 1)] * 16, (), True),
            (
                "too few are near",
                [
                    *(request("a", 5), request("b", 4), request("b", 4)),
                    *(request("a", 5, REQUIRED), request("a", 6)),
                ],
                (0,),
                False,
            ),
        ):
            few = _at_most(20_000, devices._suiting)
            with mock.patch.object(devices, "_suiting", few):
                found = devices.given(asked, near, nodes)
            self.assertEqual(expected, found is not None, name)


def _at_most(calls, function):
    """Return the function; it fails when it is called more often."""
    left = itertools.count(calls, -1)

    def counted(*arguments):
        if not next(left):
            raise AssertionError(f"more than {calls} calls")
        return function(*arguments)

    return counted
