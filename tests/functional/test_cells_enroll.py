# SPDX-License-Identifier: Apache-2.0
"""Hosts enrolled by NUMA node, on a real Nova and Placement."""

from tests.functional import cells

MEMORY_MB = cells.MEMORY_GB * 1024


class TestEnroll(cells.CellsCase):
    HOSTS = ("h1",)

    def test_any_mix(self):
        servers = [self.boot(cells.flavor_of(n)) for n in (16, 4, 8, 8, 4)]

        self.assertEqual(
            {"0": (20, 2 * MEMORY_MB), "1": (20, 3 * MEMORY_MB)}, self.books("h1")
        )
        for server in servers:
            self.assertEqual(self.claimed(server), self.nodes(server))
        self.boot_refused(cells.flavor_of(4))
        self.assertEqual(0, self.enroll("h1"))
