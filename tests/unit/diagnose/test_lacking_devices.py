# SPDX-License-Identifier: Apache-2.0
"""A host that lacks one kind of device is refused without trying the others."""

import types
from unittest import mock

import testtools

from nova_perfvm.diagnose import devices
from nova_perfvm.facts.snapshot.pci import LEGACY, REQUIRED, PCIPool, PCIRequest


def request(name, count, policy=LEGACY):
    specs = ({"vendor_id": name},)
    found = {"name": name, "count": count, "specs": specs, "policy": policy}
    return PCIRequest(**found, resource_class=f"CUSTOM_{name.upper()}")


class LackingDevicesTest(testtools.TestCase):
    def test_the_others_are_not_tried(self):
        """a:2 and b:2 alone can be served in 136 ways each."""
        pools, tree = [], []
        for kind, node in (("a", 0), ("b", 0), ("c", 1)):
            for number in range(16 if kind != "c" else 1):
                uuid = f"{kind}{number}"
                tags = {"vendor_id": kind, "rp_uuid": uuid}
                pools.append(PCIPool(2, node, tags))
                inventories = {f"CUSTOM_{kind.upper()}": None}
                tree.append(
                    types.SimpleNamespace(
                        uuid=uuid, inventories=inventories, traits=frozenset()
                    )
                )
        for _name, last, nodes in (
            ("no such device", request("d", 1), ()),
            ("too few devices", request("c", 3), ()),
            ("not near", request("c", 1, REQUIRED), (0,)),
        ):
            compute = types.SimpleNamespace(pci_pools=tuple(pools), cells=())
            view = types.SimpleNamespace(compute=compute, tree=tree)
            asked = [request("a", 2), request("b", 2), last]
            with mock.patch.object(
                devices, "_suiting", side_effect=devices._suiting
            ) as suiting:
                self.assertIsNone(devices.given(asked, view, nodes))
            self.assertLess(suiting.call_count, 10)
            self.assertIsNotNone(devices.given(asked[:2], view, nodes))
