# SPDX-License-Identifier: Apache-2.0
"""What the tests of ``placement: cells`` share: a cloud, enrolled by NUMA node."""

import json

from nova_perfvm import constants as const
from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.cloud import converge, nova_database
from nova_perfvm.facts.host_view import view_of
from nova_perfvm.policy import loader
from tests.functional.client import ClientMixin
from tests.functional.elastic import ElasticTest

MEMORY_GB = 8
# The flavors of the policy below, by vCPUs, and one over two NUMA nodes.
SIZES = (4, 8, 16, 20)
PAIR = f"pair.16c.{MEMORY_GB}g"
GENERAL = "general.2c.4g"
# A pinned flavor as a cloud has it before anything counts NUMA nodes.
PLAIN = {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "1"}


def flavor_of(vcpus):
    """Return the name of the flavor of the class with so many vCPUs."""
    return f"c{vcpus}.{vcpus}c.{MEMORY_GB}g"


def _pinned(name, vcpus, numa_nodes=1):
    return {
        "vcpus": vcpus,
        "cpu_policy": "dedicated",
        "numa_nodes": numa_nodes,
        "exclusive": "none",
        "disk": {"source": "volume"},
        "flavors": {
            "name": f"{name}.{{vcpus}}c.{{memory_gb}}g",
            "memory_gb": [MEMORY_GB],
            "root_gb": 0,
        },
    }


POLICY = {
    "schema_version": "1.0",
    "host_shape": "2x20",
    "placement": "cells",
    "classes": {
        **{f"c{vcpus}": _pinned(f"c{vcpus}", vcpus) for vcpus in SIZES},
        "pair": _pinned("pair", 16, numa_nodes=2),
        "general": {
            "default": True,
            "cpu_policy": "shared",
            "flavors": {
                "name": "general.{vcpus}c.{memory_gb}g",
                "sizes": [{"vcpus": 2, "memory_gb": 4, "root_gb": 20}],
            },
        },
    },
}


class CellsCase(ClientMixin, ElasticTest):
    """A cloud of hosts of 2x20 whose NUMA nodes Placement knows.

    Its policy has classes of 4, 8, 16 and 20 vCPUs on one NUMA node, and one of 16 on
    two.

    :cvar HOSTS: that are there, and enrolled; no more than that if it is empty
    """

    PLACEMENT = "cells"
    HOSTS = ("h1", "h2")
    FLAVORS = (*map(flavor_of, SIZES), PAIR, GENERAL)

    def setUp(self):
        super().setUp()
        for host in self.HOSTS:
            self.start(host)
            self.enroll(host)

    def write_policy(self, **changes):
        """Write the policy of cells with some keys changed; return its path."""
        (path,) = self.files(json.dumps(POLICY | changes))
        self.policy = loader.load(path)
        return path

    def start(self, host, shape="2x20", **settings):
        """Start a host with dedicated CPUs alone, whose nodes have their names."""
        nodes, cores = map(int, shape.split("x"))
        settings = {"dedicated": f"0-{nodes * cores - 1}", "named": True} | settings
        self.cloud.start_host(host, shape, **settings)

    def view(self, host):
        """Return a host with the NUMA nodes that Nova's database has."""
        seen = super().view(host).cloud
        return view_of(with_nodes(seen), host)

    def enroll(self, host, **options):
        """Enroll a host by what Nova's database has of it."""

        def planner(view):
            view = view_of(with_nodes(view.cloud), host)
            return plan_enroll(self.policy, view, **options)

        return converge.change_host(self.api, host, planner)

    def books(self, host):
        """Return the CPUs and memory in use of each NUMA node, as Placement has it."""
        return {
            child.name.removeprefix(f"{host}_perfvm_cell_"): (
                child.used(const.RC_CELL_CPU),
                child.used(const.RC_CELL_MEMORY),
            )
            for child in self.view(host).children
        }

    def nodes(self, server):
        """Return the NUMA nodes that Nova runs a server on."""
        path = f"/servers/{server.id}/topology"
        return [n["host_node"] for n in self.api.nova("GET", path, key="nodes")]

    def claimed(self, server):
        """Return the NUMA nodes that Placement has a server on."""
        return sorted(
            int(name.rpartition("_")[2])
            for name in self.allocations(server)
            if "_perfvm_cell_" in name
        )


def with_nodes(seen):
    """Return a snapshot with the NUMA nodes that Nova's database has."""
    return nova_database.with_cells(seen, nova_database.compute_nodes([]))
