# SPDX-License-Identifier: Apache-2.0
"""What checks say of files of options is cured by what they say to write there."""

import configparser
import dataclasses
import json
import re
import shlex

import yaml

from nova_perfvm import findings as codes
from nova_perfvm.changes.steps import Plan
from tests.unit.changes.elastic import POLICY
from tests.unit.facts.snapshot.clouds import Cloud
from tests.unit.osc.test_elastic import CloudCommandCase

FILTERS = "filter_scheduler", "enabled_filters"
FALLBACK = "workarounds", "disable_fallback_pcpu_query"
ISOLATED = "scheduler", "enable_isolated_aggregate_filtering"
PACKING = "compute", "packing_host_numa_cells_allocation_strategy"
RETRIES = "placement", "allocation_conflict_retry_count"
OURS, NOVAS = "PerfVMNUMATopologyFilter", "NUMATopologyFilter"
# Of each code: the policy's scheme, an option, and its value with which it is found.
WRONG = {
    codes.FILTER_MISSING: ("units", FILTERS, "ComputeFilter"),
    codes.FILTER_ORDER: ("units", FILTERS, f"{OURS},PerfVMFilter"),
    codes.JUDGED_TWICE: ("units", FILTERS, f"PerfVMFilter,PerfVMFilter,{OURS}"),
    codes.CHEAPER_FILTER: ("units", FILTERS, f"PerfVMFilter,{NOVAS}"),
    codes.NOT_STEERED: ("cells", FILTERS, f"ComputeFilter,PerfVMFilter,{NOVAS}"),
    codes.FALLBACK_QUERY: ("units", FALLBACK, "True"),
    codes.ISOLATION: ("units", ISOLATED, "False"),
    codes.NUMA_PACKING: ("cells", PACKING, "True"),
    codes.MODE_OBSERVE: ("units", ("perfvm", "mode"), "observe"),
    codes.NOT_ENFORCED: ("units", ("perfvm", "mode"), "observ"),
    codes.RETRY_COUNT: ("units", RETRIES, "10"),
}
UNKNOWN = (
    codes.FILTERS_UNKNOWN,
    codes.ISOLATION_UNKNOWN,
    codes.FALLBACK_UNKNOWN,
    codes.ENFORCED_UNKNOWN,
    codes.RETRY_COUNT_UNKNOWN,
)
COMMANDS = ("preflight", "h1"), ("policy", "check")


class OptionsTest(CloudCommandCase):
    def setUp(self):
        super().setUp()
        self.answer("flavors.plan", Plan())
        self.nova, self.placement = (
            self.directory / name for name in ("nova.conf", "placement.conf")
        )

    def start(self, placement):
        """Write right files, for a policy of a scheme."""
        policy = dataclasses.replace(POLICY, placement=placement)
        self.policy.write_text(yaml.safe_dump(policy.as_document()))
        cloud = Cloud(policy)
        cloud.add_host("h1", "open")
        self.answer("snapshot.read_snapshot", cloud.snapshot())
        self.nova.write_text(f"[perfvm]\npolicy_file = {self.policy}\n")
        self.write(self.nova, *FILTERS, f"ComputeFilter,PerfVMFilter,{OURS}")
        self.write(self.nova, *ISOLATED, "True")
        self.placement.write_text("")
        self.write(self.placement, *RETRIES, "1")

    @staticmethod
    def write(path, section, option, value):
        """Set an option of a file."""
        parser = configparser.RawConfigParser(default_section="")
        parser.read(path)
        if not parser.has_section(section):
            parser.add_section(section)
        parser.set(section, option, value)
        with path.open("w") as file:
            parser.write(file)
        return value

    def apply(self, remedy, enabled):
        """Do what a remedy says, on the files of this test.

        :param enabled: the filters as they are
        """
        if found := re.match(r"set \[(\w+)](\w+) = (\S+) for nova-scheduler,", remedy):
            return self.write(self.nova, *found.groups())
        program, *words = shlex.split(remedy, comments=True)
        if program == "crudini":
            set_, path, *setting = words
            self.assertEqual(("--set", self.placement.name), (set_, path[-14:]))
            return self.write(self.placement, *setting)
        pattern = r"list (\w+), then (\w+), and no (\w+), in \[(\w+)](\w+),"
        first, then, no, *key = re.match(pattern, remedy).groups()
        others = [name for name in enabled.split(",") if name not in {first, then, no}]
        return self.write(self.nova, *key, ",".join([*others, first, then]))

    def rows(self, *command):
        """Return the remedies of what a command finds, by code."""
        _, stdout, stderr = self.run_command(*command, "-f", "json")
        self.assertTrue(stdout, stderr)
        return {row["Code"]: row["Remedy"] for row in json.loads(stdout)}

    def found(self, *command):
        """Return the same of options, of a command that is told of both files."""
        named = ["--nova-conf", str(self.nova)]
        if "preflight" in command:
            named += ["--placement-conf", str(self.placement)]
        found = self.rows(*command, *named).items()
        return {c: text for c, text in found if c in WRONG or c.startswith("options.")}

    def test_what_to_write(self):
        for code, (placement, option, value) in WRONG.items():
            path = self.placement if option[0] == "placement" else self.nova
            seen = []
            for command in COMMANDS:
                self.start(placement)
                self.assertEqual({}, self.found(*command))
                self.write(path, *option, value)
                found = self.found(*command)
                if code in found:
                    self.apply(found[code], value)
                    self.assertEqual({}, self.found(*command), found[code])
                    seen.append(command)
            self.assertTrue(seen, f"{code} is found by no command")

    def test_what_to_name(self):
        """Files that were not named are named by the commands that are printed."""
        self.start("units")
        unknown = {}
        for command in COMMANDS:
            unknown |= self.rows(*command)
        for code in UNKNOWN:
            text = unknown[code]
            path = self.placement if "placement" in text else self.nova
            openstack, perfvm, *words = text.replace("FILE", str(path)).split()
            self.assertEqual(("openstack", "perfvm"), (openstack, perfvm))
            self.assertNotIn(code, self.rows(*words))
