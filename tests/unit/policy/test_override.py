# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import fixtures
import testtools

from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.policy import loader
from nova_perfvm.policy.default import DEFAULT_DOCUMENT
from nova_perfvm.policy.override import override

VCPUS = "classes.high-performance.vcpus"


class OverrideTest(testtools.TestCase):
    def test_values_are_yaml(self):
        changed, problems = override(
            DEFAULT_DOCUMENT,
            [
                "host_shape=[1x2, 1x4]",
                f"{VCPUS}=1",
                "classes.high-performance.disk.volume_type=null",
                "elastic.slots=2",
                "classes.general.flavors.sizes=[{vcpus: 1, memory_gb: 1, root_gb: 1}]",
            ],
        )
        self.assertEqual([], problems)
        self.assertEqual(["1x2", "1x4"], changed["host_shape"])
        fast = changed["classes"]["high-performance"]
        self.assertEqual(1, fast["vcpus"])
        self.assertIsNone(fast["disk"]["volume_type"])
        self.assertEqual({"slots": 2}, changed["elastic"])
        # The document stays as it is.
        self.assertEqual(20, DEFAULT_DOCUMENT["classes"]["high-performance"]["vcpus"])
        self.assertEqual(
            [{"vcpus": 1, "memory_gb": 1, "root_gb": 1}],
            changed["classes"]["general"]["flavors"]["sizes"],
        )

    def test_every_mistake_is_named(self):
        for assignment, words in (
            ("vcpus", "'vcpus', expected KEY=VALUE"),
            ("=1", "'=1', expected KEY=VALUE"),
            ("classes..vcpus=1", "expected KEY=VALUE"),
            ("classes.fast.vcpus=1", "declares high-performance, general"),
            (f"{VCPUS}.x=1", f"{VCPUS} is no mapping"),
            ("placement={", "placement: found '{': no YAML at column 2"),
            ("classes={1: {default: true}}", "a key that is no name"),
            ("elastic={a: 1, a: 2}", "elastic.a: found '{a: 1, a: 2}': given twice"),
        ):
            _, (problem,) = override(DEFAULT_DOCUMENT, [assignment])
            self.assertIn(words, str(problem))
        _, problems = override(DEFAULT_DOCUMENT, ["vcpus", "classes=5", f"{VCPUS}=4"])
        self.assertIn("classes is no mapping: give it as a whole", str(problems[1]))

    def test_a_file_with_other_keys(self):
        path = Path(self.useFixture(fixtures.TempDir()).path) / "perfvm.yaml"
        path.write_text('schema_version: "1.0"\nmanaged_hosts: labelled\n')
        policy = loader.load(path, ["placement=none"])
        self.assertEqual(("labelled", "none"), (policy.managed_hosts, policy.placement))

    def test_the_result_has_to_make_sense(self):
        for assignment, words in (
            ("placement=slot", "expected one of 'slots'"),
            (f"{VCPUS}=21", "no host of 2x20 offers that"),
            ("classes={}", "classes"),
        ):
            exc = self.assertRaises(DocumentError, loader.load, None, [assignment])
            self.assertIn(words, str(exc))
            self.assertIn("built-in policy, with the keys given", str(exc))
