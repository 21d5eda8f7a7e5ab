# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json
import pathlib
import re

import testtools
from oslo_config import cfg

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.generate.limits import LimitError, limits_of, settings_of
from nova_perfvm.placement import schemes
from nova_perfvm.policy import Elastic, loader
from tests import shown
from tests.unit.osc.base import CommandCase

POLICY = loader.load()
HIGH = "high-performance"
MIXED = loader.load(str(shown.ROOT / "etc/nova_perfvm/examples/mixed-sizes.yaml"))


def values(policy, default=(), **projects):
    """Return {(resource, project): value}."""
    found = limits_of(policy, dict(default), projects)
    return {
        (one.resource.removeprefix("class:"), one.project): one.value for one in found
    }


class LimitsTest(testtools.TestCase):
    def test_n_vms_and_no_more_fit_the_limit(self):
        """Whatever counts them; general ones take part of it beside."""
        for name, scheme in schemes.SCHEMES.items():
            policy = dataclasses.replace(POLICY, placement=name)
            (vm_class,) = policy.pinned_classes
            slot_class = scheme.slot_class(policy, vm_class)
            resource = slot_class or scheme.resource_class or "PCPU"
            flavors = {f.class_name: f.extra_specs for f in generate_flavors(policy)}
            taken = {
                of: sum(
                    int(amount)
                    for key, amount in specs.items()
                    if re.fullmatch(rf"resources\w*:{resource}", key)
                )
                for of, specs in flavors.items()
            }
            # Nova works it out itself.
            each = vm_class.vcpus if resource == "PCPU" else taken[HIGH]
            self.assertGreater(each, 0, name)
            for n in (0, 3):
                limit = values(policy, {HIGH: n})[resource, ""]
                self.assertEqual(n, limit // each, name)
                self.assertEqual(bool(taken["general"]), limit > n * each, name)

    def test_units_are_limited_by_what_vms_of_both_classes_take(self):
        """Of two children, and of four: each general VM takes a unit of every one."""
        for children, named, value, words in (
            (2, {HIGH: 0}, 998, "499 VMs of general, 2 each"),
            (4, {HIGH: 0}, 996, "249 VMs of general, 4 each"),
            (2, {HIGH: 0, "general": 500}, 1000, "or 1 VM of high-performance alone"),
            (2, {HIGH: 2, "general": 100}, 2200, "100 VMs of general, 2 each"),
            (2, {HIGH: 2}, 2998, "or 1499 VMs of general alone"),
            (4, {HIGH: 1, "general": 1000}, 5000, "1000 VMs of general, 4 each"),
        ):
            policy = dataclasses.replace(
                POLICY, placement="units", elastic=Elastic(slots=children)
            )
            (limit,) = limits_of(policy, named, {})
            self.assertEqual(value, limit.value, (children, named))
            self.assertIn(words, limit.detail, (children, named))
        (limit,) = limits_of(policy, {HIGH: -1, "general": 5}, {})
        self.assertEqual(-1, limit.value)
        for named in ({"general": 3}, {HIGH: 1, "general": -1}):
            exc = self.assertRaises(LimitError, limits_of, policy, named, {})
            self.assertIn("give a number for each, or -1 for any of high", str(exc))

    def test_what_nobody_names_stays(self):
        (limit,) = limits_of(POLICY, {}, {})
        self.assertEqual((-1, True), (limit.value, limit.keeps))
        found = limits_of(POLICY, {}, {"p": {HIGH: 2}})
        self.assertEqual(
            [(True, ""), (False, "p")], [(x.keeps, x.project) for x in found]
        )

    def test_disks_that_are_guaranteed_are_not_in_the_way(self):
        (vm_class,) = POLICY.pinned_classes
        disk = dataclasses.replace(vm_class.disk, read_iops=1000)
        changed = dataclasses.replace(vm_class, disk=disk)
        policy = dataclasses.replace(POLICY, classes=(changed, *POLICY.classes[1:]))
        expected = {("CUSTOM_PERFVM_SLOT", ""): 2, ("CUSTOM_PERFVM_READ_IOPS", ""): -1}
        self.assertEqual(expected, values(policy, {HIGH: 2}))

    def test_classes_that_are_counted_together(self):
        numbers = {vm_class.name: 1 for vm_class in MIXED.pinned_classes}
        found = values(MIXED, numbers)
        self.assertEqual(48, found["CUSTOM_PERFVM_CELL_CPU", ""])
        found = values(MIXED, numbers | {"pinned-4": -1})
        self.assertEqual(-1, found["CUSTOM_PERFVM_CELL_CPU", ""])
        exc = self.assertRaises(LimitError, limits_of, MIXED, {"pinned-4": 1}, {})
        self.assertIn("give a number for each", str(exc))

    def test_what_is_no_limit(self):
        for words, numbers in (
            ("no class 'gold'", {"gold": 1}),
            ("is not pinned", {"general": 1}),
            ("at most 2147483647", {HIGH: 2**31}),
        ):
            exc = self.assertRaises(PerfVMError, limits_of, POLICY, numbers, {})
            self.assertIn(words, str(exc))


class PrintedTest(CommandCase):
    def printed(self, name, *options):
        arguments = ("--default", f"{HIGH}=2", "--project", "${p}", f"{HIGH}=5")
        status = self.run_command("limit", "generate", *arguments, "-f", name, *options)
        self.assertEqual(0, status, self.stderr)
        return self.stdout

    def test_nova_takes_what_is_printed_for_nova_conf(self):
        # Nova registers them when it is imported.
        from nova.conf import quota

        conf = cfg.ConfigOpts()
        quota.register_opts(conf)
        path = pathlib.Path(self.write("nova.conf", self.printed("nova-conf")))
        conf(["--config-file", str(path)], default_config_files=[])
        self.assertEqual("nova.quota.UnifiedLimitsDriver", conf.quota.driver)
        expected = ["servers", "class:CUSTOM_PERFVM_SLOT"]
        self.assertEqual(expected, conf.quota.unified_limits_resource_list)
        settings = settings_of(limits_of(POLICY, {}, {}), "R2")
        self.assertIn("R2", settings[-1].values)

    def test_nova_31_needs_the_id_of_its_endpoint(self):
        self.assertIn("--endpoint", self.printed("nova-conf"))
        printed = self.printed("nova-conf", "--endpoint", "e1")
        self.assertIn("endpoint_id = e1", printed)
        self.assertNotIn("endpoint_service_type", printed)
        found = json.loads(self.printed("json", "--endpoint", "e1"))
        self.assertEqual({"endpoint_id": "e1"}, found["nova_conf"]["oslo_limit"])

    def test_every_form_says_the_same(self):
        found = json.loads(self.printed("json"))
        self.assertEqual(
            [("default_limit", 2), ("resource_limit", 5)],
            [
                (k, v)
                for one in found["limits"]
                for k, v in one.items()
                if "_limit" in k
            ],
        )
        text = self.printed("shell")
        self.assertIn("--project '${p}' --resource-limit 5 class:", text)
        self.assertIn("--default-limit 2 class:", text)
