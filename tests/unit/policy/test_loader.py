# SPDX-License-Identifier: Apache-2.0

import pathlib

import testtools
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nova_perfvm.documents.keys import keys_of
from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.placement.schemes import SCHEMES
from nova_perfvm.policy import HostShape, Policy, VMClass, loader

SAMPLE = pathlib.Path(__file__).parents[3] / "etc/nova_perfvm/perfvm.yaml"
HEAD = 'schema_version: "1.0"\n'

# Every kind of mistake in a key, one to a line, and in a class of its own one of
# keys that do not go together.
FAULTY = """\
kind: policy
schema_version: "1.0"
host_shap: 2x20
placement: slot
managed_hosts: [all]
classes:
  hp:
    vcpus: 20
    cpu_policy: dedicated
    exclusive: hosts
  Big Class: {}
  pinned: {cpu_policy: dedicated}
  first: {default: true, vif_multiqueue: yes please}
  second: {default: true, max_per_host: 0}
  third:
    flavors: {memory_gb: [1, 1]}
elastic: {units: 1}
"""


class LoadTest(testtools.TestCase):
    def test_without_a_file_the_built_in_policy(self):
        policy = loader.load()
        self.assertEqual((HostShape(2, 20),), policy.host_shapes)
        self.assertEqual(["high-performance", "general"], list(policy.by_name))
        self.assertEqual(policy, loader.load(SAMPLE))
        self.assertEqual(policy, loader.parse(HEAD))

    def test_sample_file_shows_every_key(self):
        text = SAMPLE.read_text()
        for key in (*keys_of(Policy), *keys_of(VMClass)):
            if not key.is_name:
                self.assertRegex(text, rf"(?m)^\s*{key.name}:")

    def test_all_mistakes_at_once_in_the_order_of_the_file(self):
        error = self.assertRaises(DocumentError, loader.parse, FAULTY, "perfvm.yaml")
        self.assertEqual(
            [
                (3, "host_shap"),
                (4, "placement"),
                (5, "managed_hosts"),
                (10, "classes.hp.exclusive"),
                (11, "classes.Big Class"),
                (12, "classes.pinned.vcpus"),
                (13, "classes.first.vif_multiqueue"),
                (14, "classes.second.max_per_host"),
                (16, "classes.third.flavors.memory_gb"),
                (16, "classes.third.flavors.name"),
                (17, "elastic.units"),
            ],
            [(p.line, ".".join(p.path)) for p in error.mistakes],
        )
        message = str(error)
        for words in (
            "perfvm.yaml: 11 mistakes",
            "line 3: host_shap: unknown key; did you mean host_shape?",
            "found 'slot', expected one of 'slots', 'units', 'cells', 'none'",
        ):
            self.assertIn(words, message)

    def test_a_mistake_in_what_the_file_leaves_out_says_so(self):
        error = self.assertRaises(
            DocumentError, loader.parse, f"{HEAD}host_shape: 4x10\n"
        )
        self.assertEqual([None], [mistake.line for mistake in error.mistakes])
        self.assertIn("no host of 4x10", str(error))
        self.assertIn("in the built-in value", str(error))

    def test_texts_that_are_no_policy(self):
        for text, words in (
            ("", "the file is empty, expected a mapping with schema_version"),
            ("classes: {}\n", "schema_version: missing"),
            (f"{HEAD}classes: {{}}\n", "found {}, expected a mapping of class names"),
            (f'{HEAD}classes: {{"a\\n": {{default: true}}}}\n', "class name of"),
            (f"{HEAD}a: !!python/object:os.system x\n", "not YAML"),
            (f"{HEAD}{HEAD}", "given twice, first in line 1"),
            (f"{HEAD}on: 1\n", "put it in quotes"),
            (f"{HEAD}elastic: {{slots: .inf}}\n", "found inf, expected a whole number"),
        ):
            error = self.assertRaises(DocumentError, loader.parse, text)
            self.assertIn(words, str(error))

    def test_a_name_is_for_memory_that_is_asked_for(self):
        policy = loader.parse(
            f"{HEAD}classes:\n  g: {{default: true}}\n"
            "  x: {vcpus: 4, flavors: {name: 'x.{memory_gb}'}}\n"
        )
        self.assertFalse(policy.lists_flavors)
        names = [f.name for f in generate_flavors(policy, memory_gb=[8])]
        self.assertEqual(["x.8"], names)
        self.assertEqual(policy, loader.parse(loader.dump(policy)))

    @given(
        st.fixed_dictionaries(
            {"schema_version": st.just("1.0")},
            optional={
                "host_shape": st.sampled_from(["2x20", "4x10", ["2x20", "2x32"], 3]),
                "placement": st.sampled_from([*SCHEMES, None, 1]),
                "managed_hosts": st.sampled_from(["all", "labelled", "x"]),
                "classes": st.dictionaries(
                    st.sampled_from(["a", "b", "C"]),
                    st.dictionaries(
                        st.sampled_from(
                            [key.name for key in keys_of(VMClass)] + ["typo"]
                        ),
                        st.sampled_from(
                            [
                                *(None, True, 0, 1, 20, 32, {}, []),
                                *("dedicated", "host", "threads"),
                                {"source": "volume"},
                                {"name": "x{vcpus}", "memory_gb": [1]},
                            ]
                        ),
                    ),
                ),
                "elastic": st.sampled_from([{}, {"slots": 5}, {"slots": 1}, None]),
            },
        )
    )
    def test_any_document_gives_a_policy_or_all_its_mistakes(self, document):
        try:
            policy = loader.parse(yaml.safe_dump(document))
        except DocumentError as exc:
            self.assertTrue(exc.mistakes)
            for mistake in exc.mistakes:
                self.assertTrue(mistake.message)
                if mistake.line is None:
                    self.assertIn("built-in value", mistake.message)
        else:
            self.assertEqual(policy, loader.parse(loader.dump(policy)))
