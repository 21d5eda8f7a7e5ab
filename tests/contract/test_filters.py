# SPDX-License-Identifier: Apache-2.0
"""Which filters the plugin puts into a list, and which it takes out again."""

import subprocess
from pathlib import Path

import testtools

DEVSTACK = Path(__file__).parents[2] / "devstack"
OURS = "PerfVMFilter,PerfVMNUMATopologyFilter"


class FiltersTest(testtools.TestCase):
    def run_function(self, name, filters):
        script = f'source {DEVSTACK}/lib/perfvm; {name} "$1"'
        result = subprocess.run(
            ["bash", "-ec", script, "bash", filters],
            check=True,
            capture_output=True,
            env={"PERFVM_PLUGIN_DIR": str(DEVSTACK)},
            text=True,
        )
        return result.stdout.strip()

    def test_that_of_nova_gives_way_where_ours_steers(self):
        for before, after in (
            ("A,PerfVMFilter,NUMATopologyFilter,B", f"A,{OURS},B"),
            (f"{OURS},NUMATopologyFilter", OURS),
            ("NUMATopologyFilter", "PerfVMNUMATopologyFilter"),
        ):
            found = self.run_function("perfvm_steering_filters", before)
            self.assertEqual(after, found)

    def test_both_are_added_and_novas_stays_where_it_is(self):
        for before, after, added in (
            ("", OURS, OURS),
            ("A,B", f"A,B,{OURS}", OURS),
            (f"A,{OURS},B", f"A,{OURS},B", ""),
            (
                "A, NUMATopologyFilter,B",
                "A,PerfVMFilter,NUMATopologyFilter,B",
                "PerfVMFilter",
            ),
            (
                "NUMATopologyFilter,PerfVMFilter",
                "PerfVMFilter,NUMATopologyFilter",
                "",
            ),
            ("PerfVMNUMATopologyFilter,PerfVMFilter,A", f"{OURS},A", ""),
            (
                "PerfVMFilter,A",
                "PerfVMFilter,A,PerfVMNUMATopologyFilter",
                "PerfVMNUMATopologyFilter",
            ),
            # Both, in either order: nothing is taken away.
            (
                "NUMATopologyFilter,PerfVMNUMATopologyFilter",
                "PerfVMFilter,NUMATopologyFilter,PerfVMNUMATopologyFilter",
                "PerfVMFilter",
            ),
            (
                "PerfVMNUMATopologyFilter,NUMATopologyFilter",
                f"{OURS},NUMATopologyFilter",
                "PerfVMFilter",
            ),
        ):
            self.assertEqual(after, self.run_function("perfvm_add_filters", before))
            self.assertEqual(
                added.replace(",", " "),
                self.run_function("perfvm_missing_filters", before),
            )
            again = self.run_function("perfvm_add_filters", after)
            self.assertEqual(after, again)
