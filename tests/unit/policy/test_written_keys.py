# SPDX-License-Identifier: Apache-2.0
"""Keys of Nova that an operator adds to a class, and those that are refused."""

import json

import testtools

from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.generate.flavors import generate_flavors, generate_image_properties
from nova_perfvm.policy import loader

TEXT = """
schema_version: "1.0"
classes:
  hp:
    vcpus: 20
    cpu_policy: dedicated
    extra_specs: {%s}
    image_properties: {%s}
    flavors:
      name: hp.{memory_gb}
      sizes:
        - {vcpus: 20, memory_gb: 64, root_gb: 1}
        - {vcpus: 20, memory_gb: 128, root_gb: 1, extra_specs: {%s}}
  general: {default: true, extra_specs: {"quota:cpu_quota": "50000"}}
"""
REFUSED = {
    "hw:cpu_policy": "cpu_policy decides",
    "hw:numa_nodes": "numa_nodes decides",
    "perfvm:class": "class's name decides",
    "resources:CUSTOM_PERFVM_SLOT": "placement decides",
    "resources_perfvm_a:CUSTOM_PERFVM_UNIT": "placement decides",
    "trait:CUSTOM_PERFVM_HIGH_PERFORMANCE": "placement decides",
    "resources:PCPU": "Nova derives it",
    "hw:numa_mem.0": "splits VMs evenly",
    "hw:cpu_dedicated_mask": "splits VMs evenly",
    "quota:cpu_quota": "throttles CPUs",
}
REFUSED_OF_IMAGES = {
    "hw_disk_bus": "disk.bus decides",
    "hw_vif_model": "vif_multiqueue decides",
    "hw_cpu_policy": "cpu_policy decides",
    "perfvm_class": "class's name decides",
}


def parse(specs="", properties="", of_flavor=""):
    return loader.parse(TEXT % (specs, properties, of_flavor))


class OwnKeysTest(testtools.TestCase):
    def mistakes(self, *given):
        return str(self.assertRaises(DocumentError, parse, *given))

    def test_flavors_and_images_have_them(self):
        policy = parse(
            '"quota:cpu_shares": "5", "a:b": "c"',
            '"hw_watchdog_action": "reset"',
            '"a:b": "d"',
        )
        small, large = generate_flavors(policy, class_name="hp")
        self.assertEqual(("5", "c"), _two(small))
        self.assertEqual(("5", "d"), _two(large))
        self.assertEqual(
            "reset", generate_image_properties(policy)["hw_watchdog_action"]
        )
        self.assertEqual(policy, loader.parse(loader.dump(policy)))

    def test_refused_with_the_reason(self):
        for key, why in REFUSED.items():
            for place in ((f'"{key}": "1"',), ("", "", f'"{key}": "1"')):
                self.assertIn(f"{key}: ", self.mistakes(*place))
                self.assertIn(why, self.mistakes(*place))
        for key, why in REFUSED_OF_IMAGES.items():
            self.assertIn(why, self.mistakes("", f'"{key}": "1"'))

    def test_no_text(self):
        for text in ('"hw:boot_menu": true', '"hw:boot_menu": ""', '"a b": "c"'):
            self.assertIn("extra_specs.", self.mistakes(text))


def _two(flavor):
    return tuple(flavor.extra_specs[key] for key in ("quota:cpu_shares", "a:b"))


class DeclaredTest(testtools.TestCase):
    """Keys of the class that are keys of Nova; a real Nova boots them elsewhere."""

    def high(self, **keys):
        document = loader.load().as_document()
        document["host_shape"] = ["2x20", "2x20x2"]
        document["classes"]["high-performance"] |= keys
        return loader.parse(json.dumps(document)).get_class("high-performance")

    def test_what_does_not_go_together(self):
        smt = {"smt": "threads"}
        sockets = {"sockets": "numa_nodes"}
        for keys, words in (
            ({"guest_topology": sockets}, ""),
            ({"guest_topology": {"threads": 2}}, "smt: threads"),
            ({"guest_topology": {"threads": 2}} | smt, ""),
            ({"guest_topology": {"threads": 3}} | smt, "not whole cores"),
            ({"guest_topology": {"threads": 4}, "numa_nodes": 2} | smt, "10 vCPUs"),
            (
                {"guest_topology": sockets, "extra_specs": {"hw:cpu_max_cores": "4"}},
                "guest_topology decides",
            ),
            (
                {
                    "guest_topology": sockets,
                    "image_properties": {"hw_cpu_max_cores": "4"},
                },
                "guest_topology decides",
            ),
            ({"extra_specs": {"hw:cpu_max_cores": "4"}}, ""),
            ({"locked_memory": True}, "set mem_page_size"),
            ({"locked_memory": True, "mem_page_size": "small"}, ""),
            ({"realtime": {"mask": "^0-1"}}, ""),
            ({"realtime": {"mask": "0-19"}}, "QEMU's own threads"),
            ({"realtime": {"mask": "0-19"}, "emulator_threads": "share"}, ""),
            ({"realtime": {"mask": "20"}}, "leaves no vCPU, or goes beyond 0-19"),
            ({"realtime": {"mask": "all"}}, "'^0-1'"),
            ({"realtime": {}}, "realtime.mask: missing"),
            ({"maxphysaddr": {"mode": "emulate"}}, "missing with mode: emulate"),
            ({"maxphysaddr": {"mode": "passthrough", "bits": 46}}, "only for mode"),
            ({"maxphysaddr": {"mode": "emulate", "bits": 46}}, ""),
        ):
            if words:
                error = self.assertRaises(DocumentError, self.high, **keys)
                self.assertIn(words, str(error))
            else:
                self.high(**keys)

    def test_threads_of_a_class_of_any_size(self):
        document = loader.load().as_document()
        threads = {"guest_topology": {"threads": 2}, "smt": "threads"}
        document["classes"]["general"] |= threads
        error = self.assertRaises(DocumentError, loader.parse, json.dumps(document))
        self.assertIn("threads: 1 vCPUs of a NUMA node are not whole", str(error))

    def test_realtime_shares_no_cpus(self):
        document = loader.load().as_document()
        document["classes"]["general"]["realtime"] = {"mask": "0"}
        error = self.assertRaises(DocumentError, loader.parse, json.dumps(document))
        self.assertIn("general.realtime: is for pinned VMs", str(error))
