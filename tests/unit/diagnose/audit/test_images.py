# SPDX-License-Identifier: Apache-2.0
"""Images that contradict a key of a class, and images that change its topology."""

import dataclasses
import shlex

import testtools

from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import images
from nova_perfvm.facts.snapshot import Image
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy.guest import GuestTopology
from tests.unit.facts.snapshot.clouds import POLICY, Cloud
from tests.unit.facts.test_guest_topology import by_nova

SOCKETS = {"guest_topology": GuestTopology("numa_nodes")}
THREADS = {"guest_topology": GuestTopology("numa_nodes", 2), "smt": "threads"}
TWO_NODES = SOCKETS | {"numa_nodes": 2}
# (name, keys of the class, properties of the image, the change, words of the finding)
CONTRADICTIONS = (
    ("no key of the class", {}, {"hw_pmu": "true"}, None, ""),
    ("another policy", {}, {"hw_cpu_policy": "dedicated"}, None, ""),
    (
        "counters",
        {"pmu": False},
        {"hw_pmu": "true"},
        "set --property hw_pmu=false",
        "together with flavors that have hw:pmu=false",
    ),
    (
        "own key",
        {"extra_specs": {"hw:tpm_version": "2.0"}},
        {"hw_tpm_version": "1.2"},
        "set --property hw_tpm_version=2.0",
        "hw_tpm_version=1.2",
    ),
    (
        "encrypted memory without UEFI",
        {"extra_specs": {"hw:mem_encryption": "true"}},
        {"hw_machine_type": "q35"},
        "set --property hw_firmware_type=uefi",
        "hw_firmware_type is not set: Nova refuses the image with hw:mem_encryption",
    ),
    (
        "encrypted memory on another machine",
        {"extra_specs": {"hw:mem_encryption": "true"}},
        {"hw_firmware_type": "uefi", "hw_machine_type": "pc"},
        "set --property hw_machine_type=q35",
        "hw_machine_type=pc: Nova refuses the image with hw:mem_encryption",
    ),
    (
        "by itself",
        {},
        {"hw_cpu_sockets": "4", "hw_cpu_max_sockets": "2"},
        "unset --property hw_cpu_sockets",
        "Nova refuses it with any flavor",
    ),
)
# Those of images' CPUs, for VMs of 20 vCPUs; Nova judges each row, too.
TOPOLOGIES = (
    ("none declared", {}, {"hw_cpu_max_cores": "4"}, None, ""),
    ("as declared", SOCKETS, {"hw_cpu_sockets": "1"}, None, ""),
    ("the class's limits", SOCKETS, {"hw_cpu_max_sockets": "1"}, None, ""),
    ("room", SOCKETS, {"hw_cpu_max_cores": "20"}, None, ""),
    ("threads as declared", THREADS, {"hw_cpu_threads": "2"}, None, ""),
    ("sockets", SOCKETS, {"hw_cpu_sockets": "4"}, "hw_cpu_sockets", "do not boot"),
    (
        "a limit beyond the class's",
        SOCKETS,
        {"hw_cpu_max_sockets": "4"},
        "hw_cpu_max_sockets",
        "do not boot",
    ),
    (
        "few cores",
        SOCKETS,
        {"hw_cpu_max_cores": "4"},
        "hw_cpu_max_cores",
        "are 1 x 4 x 5 with it; class high-performance has 1 x 20 x 1",
    ),
    (
        "few cores without threads",
        SOCKETS,
        {"hw_cpu_max_cores": "10", "hw_cpu_max_threads": "1"},
        "hw_cpu_max_cores",
        "hw_cpu_max_cores=10: guests of 20 vCPUs do not boot",
    ),
    (
        "threads",
        SOCKETS,
        {"hw_cpu_threads": "2", "hw_cpu_max_sockets": "1"},
        "hw_cpu_threads",
        "are 1 x 10 x 2 with it",
    ),
    (
        "no threads",
        THREADS,
        {"hw_cpu_max_threads": "1"},
        "hw_cpu_max_threads",
        "are 1 x 20 x 1 with it; class high-performance has 1 x 10 x 2",
    ),
    (
        "a preference that voids the class's",
        THREADS,
        {"hw_cpu_cores": "20"},
        "hw_cpu_cores",
        "are 1 x 20 x 1",
    ),
    (
        "one socket for two nodes",
        TWO_NODES,
        {"hw_cpu_max_sockets": "1"},
        "hw_cpu_max_sockets",
        "are 1 x 20 x 1 with it; class high-performance has 2 x 10 x 1",
    ),
    (
        "two properties",
        SOCKETS,
        {"hw_cpu_sockets": "2", "hw_cpu_max_cores": "5"},
        "hw_cpu_sockets hw_cpu_max_cores",
        "hw_cpu_sockets=2, hw_cpu_max_cores=5",
    ),
)


def found(keys, properties, **image):
    """Return the policy, and the findings about an image."""
    pinned, general = POLICY.classes
    classes = dataclasses.replace(pinned, **keys), general
    policy = dataclasses.replace(POLICY, classes=classes)
    cloud = Cloud(policy)
    cloud.parts["images"] = (Image("i", "i", properties, **image),)
    return policy, list(images.check_images(audit.Subject(policy, cloud.snapshot())))


class ImagesTest(testtools.TestCase):
    def test_a_key_that_contradicts_a_class(self):
        for row, keys, properties, change, words in CONTRADICTIONS:
            _, findings = found(keys, properties)
            self.assertEqual(change is not None, bool(findings), row)
            for one in findings:
                self.assertEqual(codes.IMAGE_CONFLICT, one.code, row)
                self.assertEqual(f"openstack image {change} i", one.remedy, row)
                self.assertIn(words, one.observed, row)

    def test_a_topology_that_contradicts_a_class(self):
        for row, keys, properties, change, words in TOPOLOGIES:
            policy, findings = found(keys, properties)
            self.assertEqual(change is not None, bool(findings), (row, findings))
            self.assert_as_nova(row, policy, properties, bool(findings))
            for one in findings:
                self.assertIn(words, one.observed, row)
                names = shlex.split(one.remedy)[4:-1:2]
                self.assertEqual(change.split(), names, row)
                left = {k: v for k, v in properties.items() if k not in names}
                self.assert_as_nova(row, policy, left, conflict=False)

    def assert_as_nova(self, row, policy, properties, conflict):
        """Compare what Nova makes of it with what the class declares."""
        vm_class = policy.pinned_classes[0]
        if vm_class.guest_topology is None:
            return
        flavor = generate_flavors(policy, class_name=vm_class.name)[0]
        seen = by_nova(flavor.vcpus, dict(flavor.extra_specs), properties)
        threads = vm_class.guest_topology.threads or 1
        sockets = vm_class.cells_per_vm
        expected = (sockets, flavor.vcpus // sockets // threads, threads)
        self.assertEqual(conflict, seen != expected, (row, seen, expected))

    def test_an_image_of_a_tenant(self):
        """A note, as operators cannot mend it."""
        limits = {"hw_cpu_max_cores": "4"}
        tenants = {"owner": "another", "visibility": "private"}
        _, (one,) = found(SOCKETS, limits, **tenants)
        self.assertEqual(codes.TENANT_IMAGE, one.code)
