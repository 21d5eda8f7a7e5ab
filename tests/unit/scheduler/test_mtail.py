# SPDX-License-Identifier: Apache-2.0
"""What mtail counts of the lines that the filter logs."""

import pathlib
import re
import shutil
import subprocess
import sys

import fixtures

from nova_perfvm.scheduler import filters
from tests.unit.scheduler import states
from tests.unit.scheduler.test_filters import FilterCase, full_host

ROOT = pathlib.Path(__file__).parents[3]


class MtailTest(FilterCase):
    def counted(self):
        """Return what mtail counts: {metric with its labels: value}."""
        program = shutil.which("mtail")
        if program is None:
            why = "no mtail: Debian's package mtail has it"
            print(f"SKIPPED {self.id()}: {why}", file=sys.stderr)  # noqa: T201
            self.skipTest(why)
        log = pathlib.Path(self.useFixture(fixtures.TempDir()).join("scheduler.log"))
        log.write_text(
            "".join(
                f"2026-11-26 23:08:17.881 12 INFO nova_perfvm.scheduler.filters {line}"
                for line in self.log.output.splitlines(keepends=True)
            )
        )
        progs = ROOT / "etc" / "nova_perfvm" / "mtail"
        ran = subprocess.run(
            [
                *(program, "--progs", progs, "--logs", log, "--logtostderr"),
                *(
                    "--emit_prog_label=false",
                    "--one_shot",
                    "--one_shot_format",
                    "prometheus",
                ),
            ],
            check=True,
            capture_output=True,
            text=True,
        )
        found = re.findall(r"^perfvm_filter_(.+) ([\d.]+)$", ran.stdout, re.MULTILINE)
        return {name: float(value) for name, value in found}

    def test_the_page_lists_them(self):
        program = (ROOT / "etc/nova_perfvm/mtail/perfvm.mtail").read_text()
        made = re.findall(
            r"^(?:counter|histogram) (\w+)(?: by ([\w, ]+))?", program, re.MULTILINE
        )
        page = (ROOT / "doc/source/admin/monitoring.rst").read_text()
        shown = re.findall(r"\* - ``(perfvm_filter_\w+)(?:{([\w, ]+)})?``", page)
        self.assertEqual(made, shown)

    def test_requests_hosts_reasons_and_time(self):
        self.config.config(policy_file=None, group="perfvm")
        judge = filters.PerfVMFilter()
        small = states.host_state("small", states.numa_topology("4x10"))
        hosts = [states.host_state("hp1"), full_host("hp2"), full_host("hp3"), small]
        spec = states.request_spec()
        judge.filter_all(hosts, spec)
        judge.filter_all(hosts[:1], spec)
        judge.filter_all(hosts, states.request_spec(vcpus=16))
        self.config.config(mode="observe", group="perfvm")
        judge.filter_all(hosts, spec)

        found = self.counted()

        refused = 'hosts_refused_total{code="host.%s",verdict="%s"}'
        unsized = 'requests_refused_total{code="flavor.vcpus",verdict="rejected"}'
        expected = {
            'requests_total{verdict="passed"}': 1,
            'requests_total{verdict="rejected"}': 2,
            'requests_total{verdict="would reject"}': 1,
            unsized: 1,
            "hosts_passed_total": 3,
            refused % ("no_free_slot", "rejected"): 2,
            refused % ("numa_cell_too_small", "rejected"): 1,
            refused % ("no_free_slot", "would reject"): 2,
            refused % ("numa_cell_too_small", "would reject"): 1,
            "seconds_count": 4,
        }
        self.assertEqual(expected, {key: found.get(key) for key in expected})
        self.assertGreater(found["seconds_sum"], 0)
