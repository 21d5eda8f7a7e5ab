# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm import findings as codes
from nova_perfvm.exceptions import PolicyError
from nova_perfvm.policy import advice, loader, problems

HEAD = 'schema_version: "1.0"\n'
GENERAL = "  general: {default: true}\n"


def problems_of(text):
    """Return {path: message} of a policy text; {} for a valid one."""
    try:
        loader.parse(HEAD + text)
    except PolicyError as exc:
        return {".".join(p.path): p.message for p in exc.problems}
    return {}


class ProblemsTest(testtools.TestCase):
    """Every impossible combination, with the key to change and the remedy."""

    def check(self, path, words, text):
        found = problems_of(text)
        self.assertEqual([path], list(found))
        self.assertIn(words, found[path])

    def check_class(self, key, words, keys, shape="2x20"):
        self.check(
            f"classes.x.{key}",
            words,
            f"host_shape: {shape}\nclasses:\n{GENERAL}  x: {{{keys}}}\n",
        )

    def test_built_in_policy_has_none(self):
        self.assertEqual([], problems(loader.load()))

    def test_dedicated_without_vcpus(self):
        self.check_class("vcpus", "exact number", "cpu_policy: dedicated")

    def test_numa_nodes_that_do_not_divide(self):
        self.check_class(
            "numa_nodes",
            "expected one of 1, 2, 4, 5",
            "cpu_policy: dedicated, vcpus: 20, numa_nodes: 3",
        )

    def test_former_sizes(self):
        pinned = "cpu_policy: dedicated, vcpus: 18"
        for index, words, keys in (
            (0, "the size that VMs have today", f"{pinned}, former_vcpus: [18]"),
            (
                1,
                "cannot be split evenly over 2",
                f"{pinned}, numa_nodes: 2, former_vcpus: [20, 15]",
            ),
        ):
            self.check_class(f"former_vcpus.{index}", words, keys)
        for keys, words in (
            ("former_vcpus: [20]", "any number of vCPUs"),
            (f"{pinned}, former_vcpus: [20, 20]", "each value once"),
            (f"{pinned}, former_vcpus: 20", "such as [20]"),
        ):
            self.check_class("former_vcpus", words, keys)
        # They need not fit today's hosts: those that run are where they are.
        good = f"classes:\n{GENERAL}  x: {{{pinned}, former_vcpus: [20, 40]}}\n"
        self.assertEqual({}, problems_of(good))

    def test_former_sizes_rest_on_vcpus(self):
        self.check_class("vcpus", "vCPUs", "vcpus: many, former_vcpus: [20]")
        self.check_class(
            "former_vcpus.0",
            "a whole number of vCPUs",
            "cpu_policy: dedicated, vcpus: 18, former_vcpus: [many]",
        )

    def test_numa_nodes_for_any_size(self):
        self.check_class("numa_nodes", "any size", "numa_nodes: 2")

    def test_memory_that_cannot_be_split(self):
        for numa, words in (
            ("numa_nodes: 3", "64 GiB cannot be split evenly over 3 NUMA nodes"),
            (
                "numa_nodes: 2, mem_page_size: 1GB",
                "65 GiB make 33280 MiB on each of 2 NUMA nodes, no whole number",
            ),
        ):
            memory_gb = words.split()[0]
            self.check_class(
                "flavors.sizes.1.memory_gb",
                words,
                f"cpu_policy: dedicated, vcpus: 30, {numa}, disk: {{source: volume}}, "
                f"flavors: {{name: 'x{{memory_gb}}', memory_gb: [96, {memory_gb}]}}",
                "4x20",
            )

    def test_isolate_on_nodes_that_the_vcpus_fill(self):
        self.check_class(
            "emulator_threads",
            "21 in all",
            "cpu_policy: dedicated, vcpus: 20, emulator_threads: isolate",
        )

    def test_isolate_fits_larger_nodes(self):
        self.assertEqual(
            {},
            problems_of(
                f"host_shape: 2x21\nclasses:\n{GENERAL}  x: {{cpu_policy: dedicated, "
                "vcpus: 20, emulator_threads: isolate}\n"
            ),
        )

    def test_class_that_fits_no_host(self):
        self.check_class("vcpus", "no host of 2x20", "cpu_policy: dedicated, vcpus: 32")

    def test_class_that_fits_one_of_several_shapes(self):
        self.assertEqual(
            {},
            problems_of(
                "host_shape: [2x20, 2x32]\nclasses:\n"
                f"{GENERAL}  x: {{cpu_policy: dedicated, vcpus: 32}}\n"
            ),
        )

    def test_more_nodes_than_the_host_has(self):
        self.check_class(
            "vcpus", "on each of 4", "cpu_policy: dedicated, vcpus: 20, numa_nodes: 4"
        )

    def test_pinned_keys_of_a_shared_class(self):
        for key, value in (
            ("cpu_thread_policy", "prefer"),
            ("emulator_threads", "share"),
            ("max_per_host", "2"),
            ("exclusive", "host"),
            ("smt", "threads"),
        ):
            with self.subTest(key):
                self.check_class(key, "pinned VMs only", f"{key}: {value}")

    def test_thread_isolation_on_smt_hosts(self):
        self.check_class(
            "cpu_thread_policy",
            "sibling threads",
            "cpu_policy: dedicated, vcpus: 20, cpu_thread_policy: isolate",
            "2x20x2",
        )

    def test_require_contradicts_whole_cores(self):
        self.check_class(
            "cpu_thread_policy",
            "smt: threads",
            "cpu_policy: dedicated, vcpus: 20, cpu_thread_policy: require",
            "2x20x2",
        )

    def test_no_default_class(self):
        self.check("classes", "no class has default", "classes: {x: {}}\n")

    def test_two_default_classes(self):
        self.check(
            "classes.x.default",
            "general is the default class already",
            f"classes:\n{GENERAL}  x: {{default: true}}\n",
        )

    def test_pinned_default_class(self):
        self.check(
            "classes.x.default",
            "cpu_policy: shared",
            "classes: {x: {default: true, cpu_policy: dedicated, vcpus: 4}}\n",
        )

    def test_default_class_of_one_size(self):
        self.check(
            "classes.x.vcpus", "any size", "classes: {x: {default: true, vcpus: 4}}\n"
        )

    def test_volume_type_without_volume(self):
        self.check_class("disk.volume_type", "no effect", "disk: {volume_type: fast}")

    def test_root_disk_of_zero_from_an_image(self):
        self.check_class(
            "flavors.sizes.0.root_gb",
            "only administrators",
            "flavors: {name: a, sizes: [{vcpus: 1, memory_gb: 1, root_gb: 0}]}",
        )

    def test_flavor_of_another_size_than_its_class(self):
        self.check_class(
            "flavors.sizes.0.vcpus",
            "exactly 20",
            "cpu_policy: dedicated, vcpus: 20, flavors: {name: a, "
            "sizes: [{vcpus: 4, memory_gb: 1, root_gb: 1}]}",
        )

    def test_flavors_of_one_name_in_a_class(self):
        self.check_class(
            "flavors.name",
            "would both be called",
            "vcpus: 4, flavors: {name: same, memory_gb: [1, 2], root_gb: 5}",
        )

    def test_flavors_of_one_name_in_two_classes(self):
        sizes = "{name: same, sizes: [{vcpus: 1, memory_gb: 1, root_gb: 1}]}"
        self.check(
            "classes.x.flavors.name",
            "a flavor of class general already",
            f"classes:\n  general: {{default: true, flavors: {sizes}}}\n"
            f"  x: {{flavors: {sizes}}}\n",
        )

    def test_unknown_field_in_a_flavor_name(self):
        for name in ("{cpus}", "{vcpus:03}", "{", "{}", "{vcpus!r}", "{0}"):
            with self.subTest(name):
                self.check_class(
                    "flavors.name",
                    "expected",
                    f"vcpus: 4, flavors: {{name: '{name}', memory_gb: [1], "
                    "root_gb: 5}",
                )

    def test_flavor_names_that_nova_does_not_take(self):
        for name, words in (
            (" {vcpus}.{memory_gb}", "no space at either end"),
            ("a\\t{memory_gb}", "printable"),
            ("-{memory_gb}", "openstack client"),
        ):
            with self.subTest(words):
                self.check_class(
                    "flavors.name",
                    words,
                    f'vcpus: 4, flavors: {{name: "{name}", memory_gb: [32, 64], '
                    "root_gb: 5}",
                )

    def test_exclusive_beside_another_pinned_class(self):
        classes = (
            f"classes:\n{GENERAL}  a: {{cpu_policy: dedicated, vcpus: 20, "
            "exclusive: host}\n  b: {cpu_policy: dedicated, vcpus: 4}\n"
        )
        self.check("managed_hosts", "perfvm:class", classes)
        self.assertEqual({}, problems_of(f"managed_hosts: labelled\n{classes}"))

    def test_pinned_classes_of_one_name_to_placement(self):
        pinned = "{cpu_policy: dedicated, vcpus: 4}"
        self.check(
            "classes.hp_20",
            "is CUSTOM_PERFVM_SLOT_HP_20 to Placement, as class hp-20 is",
            f"classes:\n{GENERAL}  hp-20: {pinned}\n  hp_20: {pinned}\n",
        )
        self.check(
            "classes.elastic-2",
            "CUSTOM_PERFVM_ELASTIC_2, which is a name of elastic hosts",
            f"classes:\n{GENERAL}  hp: {pinned}\n  elastic-2: {pinned}\n",
        )


class AcceptanceTest(testtools.TestCase):
    """Only codes that there are, and that break no guarantee, can be accepted."""

    def test_what_may_stay(self):
        for code in (codes.FLAVOR_LEFT_BEHIND, codes.FLAVORS_DIFFER, codes.NOT_SEEN):
            policy = loader.parse(f"{HEAD}accept: [{code}]\n")
            self.assertEqual((code,), policy.accept)
            self.assertEqual(policy, loader.parse(loader.dump(policy)))

    def test_mistakes(self):
        error = self.assertRaises(
            PolicyError,
            loader.parse,
            f"{HEAD}accept:\n  - audit.flavor_left_behnd\n  - nonsense\n"
            "  - audit.pins_overlap\n  - audit.stuck\n",
        )
        self.assertEqual(
            [(3, "accept.0"), (4, "accept.1"), (5, "accept.2")],
            [(p.line, ".".join(p.path)) for p in error.problems],
        )
        unknown, odd, failure = (p.message for p in error.problems)
        self.assertIn("did you mean audit.flavor_left_behind", unknown)
        self.assertIn("such as audit.flavor_changed", odd)
        self.assertIn("audit.pins_overlap is a failure", failure)

    def test_other_values(self):
        for value in ("audit.stuck", "[1]", "[audit.stuck, audit.stuck]", "{a: b}"):
            self.assertRaises(PolicyError, loader.parse, f"{HEAD}accept: {value}\n")


class AdviceTest(testtools.TestCase):
    """What a valid policy costs is said."""

    def paths(self, text):
        found = advice(loader.parse(HEAD + text))
        return [".".join(noted.problem.path) for noted in found]

    def test_classes_that_fill_a_node_leave_nothing_to_the_host(self):
        found = list(advice(loader.load()))
        self.assertEqual(
            [("classes", "high-performance", "vcpus")],
            [noted.problem.path for noted in found],
        )
        self.assertIn("emulator threads", found[0].problem.message)
        self.assertEqual(codes.NO_CPU_FOR_HOST, found[0].code)

    def test_nothing_to_say_when_a_node_has_cpus_left(self):
        self.assertEqual([], self.paths("host_shape: 2x22\n"))

    def test_threads_are_not_cores(self):
        self.assertIn(
            "classes.x.smt",
            self.paths(
                f"host_shape: 2x20x2\nclasses:\n{GENERAL}  x: {{vcpus: 20, "
                "cpu_policy: dedicated, smt: threads}\n"
            ),
        )

    def test_share_needs_shared_cpus(self):
        self.assertEqual(
            ["classes.x.emulator_threads"],
            self.paths(
                f"host_shape: 2x22\nclasses:\n{GENERAL}  x: {{vcpus: 20, "
                "cpu_policy: dedicated, emulator_threads: share}\n"
            ),
        )

    def test_units_rest_on_the_fallback_query(self):
        self.assertEqual(
            ["placement"], self.paths("host_shape: 2x22\nplacement: units\n")
        )


class UnitsTest(testtools.TestCase):
    """What child providers cannot express."""

    def problems(self, keys):
        return problems_of(
            f"placement: units\nclasses:\n{GENERAL}  x: {{cpu_policy: dedicated, "
            f"vcpus: 20, {keys}}}\n"
        )

    def test_one_exclusive_pinned_class_of_one_node(self):
        self.assertEqual({}, self.problems("exclusive: host"))

    def test_exclusive_otherwise(self):
        for exclusive in ("cell", "none"):
            self.assertEqual(
                ["classes.x.exclusive"],
                list(self.problems(f"exclusive: {exclusive}")),
            )

    def test_several_nodes(self):
        self.assertEqual(
            ["classes.x.numa_nodes"],
            list(self.problems("exclusive: host, numa_nodes: 2")),
        )

    def test_no_pinned_class(self):
        found = problems_of(f"placement: units\nclasses:\n{GENERAL}")
        self.assertEqual(["placement"], list(found))

    def test_fewer_slots_declared_than_fit(self):
        for slots, fault in ((1, True), (2, False), ("null", False), (26, False)):
            keys = f"exclusive: host}}\nelastic: {{slots: {slots}"
            found = self.problems(keys)
            self.assertEqual(["elastic.slots"] * fault, list(found))
            self.assertIn("expected 2 or more" * fault, "".join(found.values()))

    def test_more_slots_than_letters(self):
        for keys, shape, fault in (
            ("", "2x13", False),
            ("", "2x14", True),
            ("max_per_host: 26", "8x64", False),
            ("max_per_host: 27", "8x64", True),
        ):
            found = problems_of(
                f"placement: units\nhost_shape: {shape}\nclasses:\n{GENERAL}"
                f"  x: {{cpu_policy: dedicated, vcpus: 1, exclusive: host, {keys}}}\n"
            )
            self.assertEqual(["classes.x.max_per_host"] * fault, list(found))
            self.assertIn(
                "set max_per_host: 26 or less" * fault, "".join(found.values())
            )
