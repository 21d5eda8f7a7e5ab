# SPDX-License-Identifier: Apache-2.0

import pathlib
import tempfile

import testtools
from hypothesis import given
from hypothesis import strategies as st

from nova_perfvm.exceptions import PolicyError
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy import HostShape, loader

ROOT = pathlib.Path(__file__).parents[3]
HEAD = 'schema_version: "1.0"\n'

# Every kind of mistake, one to a line, and none hides another.
FAULTY = """\
schema_version: "2.0"
host_shap: 2x20
placement: slot
managed_hosts: [all]
classes:
  hp:
    vcpus: 20
    cpu_policy: dedicated
    numa_nodes: 3
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

    def test_sample_file_is_the_built_in_policy(self):
        sample = ROOT / "etc" / "nova_perfvm" / "perfvm.yaml"
        self.assertEqual(loader.load(), loader.load(sample))

    def test_sample_file_shows_every_key(self):
        text = (ROOT / "etc" / "nova_perfvm" / "perfvm.yaml").read_text()
        classes = loader.SCHEMA["properties"]["classes"]["additionalProperties"]
        for key in [*loader.SCHEMA["properties"], *classes["properties"]]:
            self.assertRegex(text, rf"(?m)^\s*{key}:")

    def test_only_the_version_is_the_built_in_policy_too(self):
        self.assertEqual(loader.load(), loader.parse(HEAD))

    def test_a_class_left_out_is_gone(self):
        policy = loader.parse(f"{HEAD}classes: {{g: {{default: true}}}}\n")
        self.assertEqual(["g"], list(policy.by_name))

    def test_all_mistakes_at_once_in_the_order_of_the_file(self):
        error = self.assertRaises(PolicyError, loader.parse, FAULTY, "perfvm.yaml")
        self.assertEqual(
            [
                (1, "schema_version"),
                (2, "host_shap"),
                (3, "placement"),
                (4, "managed_hosts"),
                (9, "classes.hp.numa_nodes"),
                (10, "classes.hp.exclusive"),
                (11, "classes.Big Class"),
                (12, "classes.pinned.vcpus"),
                (13, "classes.first.vif_multiqueue"),
                (14, "classes.second.default"),
                (14, "classes.second.max_per_host"),
                (16, "classes.third.flavors.memory_gb"),
                (16, "classes.third.flavors.name"),
                (17, "elastic.units"),
            ],
            [(p.line, ".".join(p.path)) for p in error.problems],
        )
        message = str(error)
        self.assertIn("perfvm.yaml: 14 mistakes in the policy", message)
        self.assertIn(
            "line 2: host_shap: unknown key; did you mean host_shape?", message
        )
        self.assertIn("found 'slot', expected one of 'slots', 'units', 'none'", message)

    def test_a_mistake_in_what_the_file_leaves_out_says_so(self):
        error = self.assertRaises(
            PolicyError, loader.parse, f"{HEAD}host_shape: 4x10\n"
        )
        self.assertEqual([None], [problem.line for problem in error.problems])
        self.assertIn("no host of 4x10", str(error))
        self.assertIn("this is the built-in value", str(error))

    def test_an_alias_with_a_mistake_is_reported_at_each_place(self):
        error = self.assertRaises(
            PolicyError,
            loader.parse,
            f"{HEAD}classes:\n  general:\n    default: true\n"
            '    disk: &x {name: "n", sizes: '
            "[{vcpus: 1, memory_gb: 1, root_gb: 1}]}\n    flavors: *x\n",
        )
        self.assertEqual(
            [
                ("classes", "general", "disk", "name"),
                ("classes", "general", "disk", "sizes"),
            ],
            [problem.path for problem in error.problems],
        )

    def test_files_that_cannot_be_read(self):
        with tempfile.TemporaryDirectory() as folder:
            binary = pathlib.Path(folder) / "binary"
            binary.write_bytes(b"\xff\xfe\x00")
            for path, words in (
                (pathlib.Path(folder) / "absent", "no such file"),
                (pathlib.Path(folder), "cannot be read"),
                (binary, "no UTF-8"),
            ):
                with self.subTest(words):
                    error = self.assertRaises(PolicyError, loader.load, path)
                    self.assertEqual(str(path), error.source)
                    self.assertIn(words, str(error))

    def test_texts_that_are_no_policy(self):
        for text, words in (
            ("", "expected a mapping"),
            ("- a\n", "expected a mapping"),
            ("classes: {}\n", "schema_version: missing"),
            (f"{HEAD}classes: {{}}\n", "found an empty mapping"),
            (f"{HEAD}classes: [a]\n", "expected a mapping of class names"),
            (f'{HEAD}classes: {{"a\\n": {{default: true}}}}\n', "class name of"),
            (f"{HEAD}a: [\n", "no YAML"),
            (f"{HEAD}a: !!python/object:os.system x\n", "no YAML"),
            (f"{HEAD}{HEAD}", "given twice, first in line 1"),
            (f"{HEAD}on: 1\n", "put it in quotes"),
            (f"{HEAD}? [a, b]\n: 1\n", "put it in quotes"),
            (f"{HEAD}placement: &x [*x]\n", "contains itself"),
            (f"{HEAD}placement: 2026-99-99\n", "unreadable value"),
        ):
            with self.subTest(text):
                self.assertIn(
                    words, str(self.assertRaises(PolicyError, loader.parse, text))
                )

    def test_flavor_keys_that_would_be_dropped(self):
        sizes = "sizes: [{vcpus: 4, memory_gb: 8, root_gb: 10}]"
        for keys, flavors, path, words in (
            ("vcpus: null", "memory_gb: [4]", ".memory_gb", "use sizes"),
            ("smt: cores", f"memory_gb: [4], {sizes}", ".memory_gb", "use sizes"),
            ("vcpus: 4", f"root_gb: 5, {sizes}", ".root_gb", "remove it"),
            ("vcpus: 4", "root_gb: 5", ".root_gb", "memory_gb, which is missing"),
            ("smt: cores", "", "", "give sizes"),
        ):
            with self.subTest(flavors):
                error = self.assertRaises(
                    PolicyError,
                    loader.parse,
                    f"{HEAD}classes:\n  g: {{default: true}}\n"
                    f"  x: {{{keys}, flavors: {{name: a, {flavors}}}}}\n",
                )
                (problem,) = error.problems
                self.assertEqual(
                    (f"classes.x.flavors{path}", 4),
                    (".".join(problem.path), problem.line),
                )
                self.assertIn(words, problem.message)

    def test_a_name_is_for_memory_that_is_asked_for(self):
        policy = loader.parse(
            f"{HEAD}classes:\n  g: {{default: true}}\n"
            "  x: {vcpus: 4, flavors: {name: 'x.{memory_gb}'}}\n"
        )
        self.assertFalse(policy.lists_flavors)
        names = [f.name for f in generate_flavors(policy, memory_gb=[8])]
        self.assertEqual(["x.8"], names)
        self.assertEqual(policy, loader.parse(loader.dump(policy)))

    def test_flavor_keys_rest_on_vcpus(self):
        for keys in ("vcpus: x", "cpu_policy: dedicated", "cpu_policy: dedicatd"):
            error = self.assertRaises(
                PolicyError,
                loader.parse,
                f"{HEAD}classes:\n  g: {{default: true}}\n"
                f"  x: {{{keys}, flavors: {{name: a, memory_gb: [4]}}}}\n",
            )
            self.assertEqual(1, len(error.problems), str(error))

    def test_a_mistake_is_told_once(self):
        for text, message in (
            (
                f"{HEAD}elastic: {{slots: .inf}}\n",
                "found inf, expected a whole number of slots from 1 to 26",
            ),
            ("schema_version: 1.0\n", 'found 1.0, expected "1.0", in quotes'),
        ):
            error = self.assertRaises(PolicyError, loader.parse, text)
            self.assertEqual([message], [p.message for p in error.problems])

    def test_dump_is_read_back_equal(self):
        policy = loader.load()
        self.assertEqual(policy, loader.parse(loader.dump(policy)))

    @given(
        st.fixed_dictionaries(
            {"schema_version": st.just("1.0")},
            optional={
                "host_shape": st.sampled_from(["2x20", "4x10", ["2x20", "2x32"], 3]),
                "placement": st.sampled_from(["slots", "units", "none", None, 1]),
                "managed_hosts": st.sampled_from(["all", "labelled", "x"]),
                "classes": st.dictionaries(
                    st.sampled_from(["a", "b", "C"]),
                    st.dictionaries(
                        st.sampled_from(
                            [
                                "vcpus",
                                "numa_nodes",
                                "max_per_host",
                                "cpu_policy",
                                "exclusive",
                                "default",
                                "disk",
                                "flavors",
                                "smt",
                                "typo",
                            ]
                        ),
                        st.sampled_from(
                            [
                                None,
                                True,
                                0,
                                1,
                                20,
                                32,
                                "dedicated",
                                "host",
                                {},
                                [],
                                {"source": "volume"},
                                "threads",
                                {"name": "x{vcpus}", "memory_gb": [1]},
                            ]
                        ),
                    ),
                ),
                "elastic": st.sampled_from(
                    [{}, {"slots": 5}, {"slots": 1}, {"units": "x"}, None]
                ),
            },
        )
    )
    def test_any_document_gives_a_policy_or_all_its_mistakes(self, document):
        import yaml

        text = yaml.safe_dump(document)
        try:
            policy = loader.parse(text)
        except PolicyError as exc:
            self.assertTrue(exc.problems)
            for problem in exc.problems:
                self.assertTrue(problem.message)
                if problem.line is None and len(problem.path) > 1:
                    self.assertIn("built-in value", problem.message)
        else:
            self.assertEqual(policy, loader.parse(loader.dump(policy)))
