# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.facts.demand import Demand
from nova_perfvm.facts.host_view import view_of
from nova_perfvm.facts.placement_request import Group
from nova_perfvm.facts.snapshot import Inventory, Provider
from nova_perfvm.placement.candidates import ask
from tests.unit.facts.snapshot.clouds import POLICY, Cloud

T = frozenset({"CUSTOM_T"})
Z = "CUSTOM_Z"


def provider(name, amounts, traits=frozenset()):
    return Provider(
        uuid=name,
        name=name,
        generation=0,
        inventories={key: Inventory(n, n) for key, n in amounts.items()},
        traits=traits,
        root="root",
    )


class GroupsTest(testtools.TestCase):
    # (providers, groups, group policy, Placement's only candidate)
    CASES = (
        # The unsuffixed group's traits may be on another of its providers.
        (
            (
                provider("root", {"VCPU": 8}, T),
                provider("gpu1", {"VGPU": 1}, T),
                provider("gpu2", {"VGPU": 1}),
            ),
            (Group("", {"VCPU": 1, "VGPU": 1}, T), Group("1", {"VGPU": 1}, T)),
            "none",
            {"root": {"VCPU": 1}, "gpu1": {"VGPU": 1}, "gpu2": {"VGPU": 1}},
        ),
        # It may share a provider with a suffixed group.
        (
            (
                provider("root", {"VCPU": 8}),
                provider("gpu2", {"VGPU": 1}),
                provider("gpu1", {"VGPU": 2, Z: 1}),
            ),
            (
                Group("", {"VCPU": 1, "VGPU": 1}),
                Group("1", {"VGPU": 1}),
                Group("2", {"VGPU": 1, Z: 1}),
            ),
            "isolate",
            {"root": {"VCPU": 1}, "gpu1": {"VGPU": 2, Z: 1}, "gpu2": {"VGPU": 1}},
        ),
    )

    def test_the_unsuffixed_group_swaps_with_no_suffixed_one(self):
        cloud = Cloud(POLICY)
        cloud.add_host("h1")
        view = view_of(cloud.snapshot(), "h1")
        for tree, groups, policy, expected in self.CASES:
            host = dataclasses.replace(view, tree=tree)
            answer = ask(host, Demand(groups, policy), isolated=False)
            self.assertEqual(((), expected), answer)
