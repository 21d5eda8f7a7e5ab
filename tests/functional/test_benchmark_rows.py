# SPDX-License-Identifier: Apache-2.0
"""What the scheduler's benchmark writes in bulk is what the services write."""

import dataclasses
import json

from nova import context as nova_context
from nova import objects
from nova.db.main import api as db

from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.cloud import converge
from nova_perfvm.facts.snapshot import NOVA_DATABASE, resources
from nova_perfvm.rules.enabled_filters import NOVA_FILTERS, NUMA_FILTER
from tests.benchmark.scheduling import flavors, pools, rows
from tests.functional import base
from tests.functional.elastic import ElasticTest

# What names the host, or the time.
OWN = {
    *("id", "uuid", "service_id", "host", "hypervisor_hostname"),
    *("created_at", "updated_at", "deleted_at", "stats", "numa_topology", "pci_stats"),
    "cpu_info",
    # An old column that nova-compute does not write.
    "extra_resources",
}


class TestRows(ElasticTest):
    POOL = pools.POOLS["no cpu sets"]
    GUESTS = pools.Guests(high=(base.HP_64,))
    HOST = {}  # noqa: RUF012

    def setUp(self):
        super().setUp()
        self.cloud.start_host("e1", "2x20", **self.HOST)
        self.enroll("e1")
        self.server = self.boot(*self.GUESTS.high)
        self.cloud.run_periodics()

    def real_row(self):
        context = nova_context.get_admin_context()
        for cell in objects.CellMappingList.get_all(context):
            with nova_context.target_cell(context, cell) as targeted:
                for row in db.compute_node_get_all(targeted):
                    return dict(row)
        return None

    def test_rows(self):
        real = self.real_row()
        ours = rows.compute_node(self.POOL, 0, self.GUESTS)

        self.assertEqual(
            {key: value for key, value in real.items() if key not in OWN},
            {key: value for key, value in ours.items() if key not in OWN},
        )
        for column in ("cpu_info", "pci_stats", "numa_topology"):
            # Features, changes and CPUs are in the order of a set.
            self.assertEqual(*(in_order(json.loads(r[column])) for r in (real, ours)))
        # Those that nova-compute gives, or would give an active server.
        known = {*json.loads(real["stats"]), "num_vm_active"}
        self.assertEqual(set(), json.loads(ours["stats"]).keys() - known)
        self._placement_shows_the_same()

    def _placement_shows_the_same(self):
        view = self.view("e1")
        host, children = view.root, view.children
        pool, scheme = self.POOL, self.PLACEMENT
        [(_, claimed)] = rows.allocations(pool, scheme, 0, self.GUESTS)
        made = rows.children(scheme, 0)

        # Which they are makes no difference to Placement.
        number = len(rows.traits_of(pool, scheme))
        self.assertLess(abs(number - len(host.traits)), 10)
        self.assertEqual(inventories(rows.inventories(pool, scheme)), host.inventories)
        self.assertEqual(
            sorted(f"{c.trait} {sorted(c.inventories.items())}" for c in made.values()),
            sorted(
                f"{trait} {sorted(child.inventories.items())}"
                for child in children
                for trait in child.traits
            ),
        )
        self.assertEqual(
            in_order(list(claimed.values())),
            in_order(
                [
                    dict(provider.allocations[self.server.id])
                    for provider in (host, *children)
                    if self.server.id in provider.allocations
                ]
            ),
        )


class TestRowsOfCells(TestRows):
    POOL = pools.MIXED_POOLS["4 to 20 vCPUs"]
    GUESTS = pools.Guests(high=("p.20c",), nodes=(0,))
    HOST = {"dedicated": "0-39", "named": True}  # noqa: RUF012
    PLACEMENT = "cells"
    FLAVORS = ("p.20c",)

    def start_cloud(self, **options):
        self.policy = flavors.policy("cells")
        options |= {"policy_file": self.write_policy()}
        super().start_cloud(enabled_filters=(*NOVA_FILTERS, NUMA_FILTER), **options)

    def enroll(self, host):
        def plan(view):
            told = dataclasses.replace(view.compute, cells_source=NOVA_DATABASE)
            return plan_enroll(self.policy, dataclasses.replace(view, compute=told))

        return converge.change_host(self.api, host, plan)


def inventories(found):
    """Return inventories as a snapshot has them."""
    return {name: resources.Inventory(**amounts) for name, amounts in found.items()}


def in_order(value):
    """Return JSON with all lists in an order of their own."""
    if isinstance(value, dict):
        return {key: in_order(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted(map(in_order, value), key=json.dumps)
    return value
