# SPDX-License-Identifier: Apache-2.0
"""What is written of schedulers' cost: from the figures, and nowhere by hand."""

import collections
import json
import pathlib
import shlex
import tempfile

import testtools
from nova import objects
from nova.scheduler import host_manager

from nova_perfvm import constants as const
from tests.benchmark.scheduling import pools, report, rows
from tests.benchmark.scheduling.__main__ import COMMAND, STUDIES, parse
from tests.unit.scheduler import states

PAGES = pathlib.Path(__file__).parents[3] / "doc" / "source" / "contributor"
DEDICATED, OPEN = pools.POOLS["dedicated"], pools.POOLS["no cpu sets"]


class PagesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.figures = json.loads((PAGES / report.FIGURES).read_text())

    def test_every_table_is_what_the_figures_say(self):
        with tempfile.TemporaryDirectory() as directory:
            report.write(self.figures, pathlib.Path(directory))
            written = {
                path.name: path.read_text()
                for path in pathlib.Path(directory).iterdir()
            }

        self.assertEqual(
            written,
            {
                path.name: path.read_text()
                for path in PAGES.glob("scheduling-*")
                if path.suffix != ".rst"
            },
        )

    def test_every_study_is_shown_with_a_command_that_the_script_takes(self):
        pages = "".join(path.read_text() for path in PAGES.glob("*.rst"))

        self.assertEqual(set(STUDIES), set(self.figures))
        for name, study in self.figures.items():
            self.assertIn(f".. include:: scheduling-{name}.txt", pages)
            words = tuple(shlex.split(study["made"]["command"]))
            self.assertEqual(COMMAND, words[:3])
            parse(words[3:])


class FillTest(testtools.TestCase):
    def test_so_many_places_are_taken_as_asked_for(self):
        guests = pools.fill(DEDICATED, 100, 0.95)

        self.assertEqual(190, sum(len(here.high) for here in guests))

    def test_hosts_without_cpu_sets_serve_one_class_each(self):
        guests = pools.fill(OPEN, 100, 0.5)

        self.assertEqual(50, sum(bool(here.flavors) for here in guests))
        self.assertFalse(any(here.high and here.general for here in guests))

    def test_numa_nodes_that_are_taken_have_no_16_cpus_in_nova_nor_in_placement(self):
        for pool in pools.MIXED_POOLS.values():
            free = collections.Counter()
            for here in pools.fill(pool, 100, 0.95):
                text = pools.topology(pool, here)
                cells = objects.NUMATopology.obj_from_db_obj(text).cells
                left = [20, 20]
                for _, claimed in rows.allocations(pool, "cells", 0, here):
                    for node in (0, 1):
                        child = claimed.get(rows.child_uuid(0, f"cell_{node}"), {})
                        left[node] -= child.get(const.RC_CELL_CPU, 0)
                self.assertEqual(left, [len(cell.free_pcpus) for cell in cells])
                free.update(left)

            self.assertEqual(10, sum(free[cpus] for cpus in range(16, 21)))


class RowsTest(testtools.TestCase):
    """What tests/functional/test_benchmark_rows.py does not compare with Nova's."""

    def test_consuming_changes_no_topology_in_place(self):
        # So that hosts with the same text could share one, as the pages say.
        text = pools.topology(DEDICATED, pools.Guests())
        parsed = objects.NUMATopology.obj_from_db_obj(text)
        state = host_manager.HostState("host", "host", "cell")
        state.numa_topology = parsed
        state.limits["numa_topology"] = objects.NUMATopologyLimits(
            cpu_allocation_ratio=1.0, ram_allocation_ratio=1.0
        )
        before = parsed.obj_to_primitive()

        state.consume_from_request(states.request_spec())

        self.assertEqual(20, len(state.numa_topology.cells[0].pinned_cpus))
        self.assertEqual(before, parsed.obj_to_primitive())

    def test_general_servers_take_a_unit_of_every_child(self):
        [(_, claimed)] = rows.allocations(OPEN, "units", 0, pools.Guests(general=1))

        self.assertEqual(
            [{const.RC_UNIT: 1}] * 2,
            [claimed[rows.child_uuid(0, suffix)] for suffix in "ab"],
        )
