# SPDX-License-Identifier: Apache-2.0
"""What is written of schedulers' cost: from the figures, and nowhere by hand."""

import contextlib
import io
import json
import pathlib
import shlex
import tempfile

import testtools
from nova import objects
from nova.scheduler import host_manager

from nova_perfvm import constants as const
from tests.benchmark.scheduling import arms, goals, pools, report, rows
from tests.benchmark.scheduling.__main__ import COMMAND, STUDIES, parse
from tests.benchmark.scheduling.flavors import HIGH, flavor
from tests.unit.scheduler import states

PAGES = pathlib.Path(__file__).parents[3] / "doc" / "source" / "admin"
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
                if path.suffix in {".txt", ".json"}
            }

        self.assertEqual(
            written,
            {
                path.name: path.read_text()
                for path in PAGES.glob("scheduling-*")
                if path.suffix in {".txt", ".json"}
            },
        )

    def test_every_study_was_made_and_is_shown_with_its_command(self):
        pages = "".join(path.read_text() for path in PAGES.glob("*.rst"))

        self.assertEqual(set(STUDIES), set(self.figures))
        for name, study in self.figures.items():
            self.assertIn(f".. include:: scheduling-{name}.txt", pages)
            text = (PAGES / f"scheduling-{name}.txt").read_text()
            for command in study["made"]["command"].split("\n"):
                self.assertIn(f"    $ {command}\n", text)

    def test_commands_are_those_that_the_script_takes(self):
        for study in self.figures.values():
            for command in study["made"]["command"].split("\n"):
                words = tuple(shlex.split(command))
                self.assertEqual(COMMAND, words[:3])
                parse(words[3:])

    def test_a_directory_of_output_is_made_before_anything_is_measured(self):
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as temporary:
            base = pathlib.Path(temporary)
            deep = base / "a" / "b"
            (base / "file").touch()

            self.assertEqual(deep, parse(["--output", str(deep)]).output)

            self.assertTrue(deep.is_dir())
            with contextlib.redirect_stderr(said):
                self.assertRaises(SystemExit, parse, ["--output", f"{base}/file"])
        self.assertIn("file: File exists", said.getvalue())


class GoalsTest(testtools.TestCase):
    def record(self, **changes):
        record = {"pool": "dedicated", "hosts": 10, "taken": 0.0, "request": HIGH}
        record |= {"arm": arms.Arm("slots", arms.REPLACEMENT).name}
        record |= {"ratio": 0.5, "scheduler_ratio": 0.4, "stock_sees": 10}
        return record | changes

    def test_the_worst_of_the_largest_pools_counts(self):
        records = [
            self.record(hosts=1, ratio=9.0),
            self.record(ratio=0.5),
            self.record(ratio=0.6, taken=0.95, stock_sees=1),
            self.record(ratio=0.9, arm="slots"),
        ]

        goal = goals.GOALS[0]

        self.assertIn("0.60", goal.measured(records))
        self.assertIn("95% taken, stock sees 1", goal.measured(records))
        self.assertIn("0.50", goal.measured(records, idle=True))
        self.assertEqual("met where nothing is taken", goal.verdict(records))
        self.assertEqual("met", goal.verdict(records[:2]))
        self.assertEqual("missed", goal.verdict([self.record(ratio=0.56)]))

    def test_what_was_not_measured_is_not_met(self):
        self.assertEqual("", goals.GOALS[1].verdict([self.record()]))
        self.assertEqual("not measured", goals.GOALS[1].measured([self.record()]))


class FillTest(testtools.TestCase):
    def test_so_many_places_are_taken_as_asked_for(self):
        guests = pools.fill(DEDICATED, 100, 0.95)

        self.assertEqual(190, sum(len(here.high) for here in guests))

    def test_hosts_without_cpu_sets_serve_one_class_each(self):
        guests = pools.fill(OPEN, 100, 0.5)

        self.assertEqual(50, sum(bool(here.flavors) for here in guests))
        self.assertFalse(any(here.high and here.general for here in guests))


class RowsTest(testtools.TestCase):
    GUESTS = pools.Guests(high=("hp.20c.64g", "hp.20c.128g"))

    def test_topology_has_the_pins_that_nova_gives(self):
        text = rows.compute_node(DEDICATED, 0, self.GUESTS)["numa_topology"]
        cells = objects.NUMATopology.obj_from_db_obj(text).cells

        self.assertEqual([20, 20], [len(cell.pinned_cpus) for cell in cells])
        self.assertEqual({65536, 131072}, {cell.memory_usage for cell in cells})

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

    def test_servers_take_what_their_flavor_claims(self):
        wanted = flavor("units", "hp.20c.64g").extra_specs
        [(_, first), (_, second)] = rows.allocations(OPEN, "units", 0, self.GUESTS)
        of_child = first.keys() - second.keys()

        self.assertEqual({rows.child_uuid(0, "a")}, of_child)
        self.assertEqual(
            {const.RC_UNIT: int(wanted[f"resources:{const.RC_UNIT}"])},
            first[of_child.pop()],
        )
        self.assertEqual({"VCPU": 20, "MEMORY_MB": 65536}, first[rows.host_uuid(0)])

    def test_general_servers_take_a_unit_of_every_child(self):
        [(_, claimed)] = rows.allocations(OPEN, "units", 0, pools.Guests(general=1))

        self.assertEqual(
            [{const.RC_UNIT: 1}] * 2,
            [claimed[rows.child_uuid(0, suffix)] for suffix in "ab"],
        )
