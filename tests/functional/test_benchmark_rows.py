# SPDX-License-Identifier: Apache-2.0
"""What the scheduler's benchmark writes in bulk is what the services write."""

import json

from nova import context as nova_context
from nova import objects
from nova.db.main import api as db

from nova_perfvm import constants as const
from nova_perfvm.facts.snapshot import resources
from tests.benchmark.scheduling import pools, rows
from tests.functional import base
from tests.functional.elastic import ElasticTest

POOL = pools.POOLS["no cpu sets"]
# What names the host, or the time.
OWN = {
    *("id", "uuid", "service_id", "host", "hypervisor_hostname"),
    *("created_at", "updated_at", "deleted_at", "stats", "numa_topology", "pci_stats"),
    "cpu_info",
    # An old column that nova-compute does not write.
    "extra_resources",
}


class TestRows(ElasticTest):
    def setUp(self):
        super().setUp()
        self.cloud.start_host("e1", "2x20")
        self.enroll("e1")
        self.server = self.boot(base.HP_64)
        self.guests = pools.Guests(high=(base.HP_64,))
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
        ours = rows.compute_node(POOL, 0, self.guests)

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
        [(_, claimed)] = rows.allocations(POOL, "units", 0, self.guests)
        made = rows.children("units", 0)

        # Which they are makes no difference to Placement.
        number = len(rows.traits_of(POOL, "units"))
        self.assertLess(abs(number - len(host.traits)), 10)
        self.assertEqual(inventories(rows.inventories(POOL, "units")), host.inventories)
        self.assertEqual(
            sorted((child.max_unit, {child.trait}) for child in made.values()),
            sorted(
                (child.inventories[const.RC_UNIT].max_unit, set(child.traits))
                for child in children
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
