# SPDX-License-Identifier: Apache-2.0
"""Every impossible combination of keys, with the key to change and the remedy."""

import testtools

from nova_perfvm import findings as codes
from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.policy import advice, loader, policy_mistakes

HEAD = 'schema_version: "1.0"\n'
GENERAL = "  general: {default: true}\n"
PINNED = "cpu_policy: dedicated, vcpus: 20"
SIZES = "sizes: [{vcpus: 4, memory_gb: 8, root_gb: 10}]"
SAME = "{name: same, sizes: [{vcpus: 1, memory_gb: 1, root_gb: 1}]}"

# Keys of a class x; the key to change; words; perhaps a host shape.
OF_A_CLASS = (
    ("cpu_policy: dedicated", "vcpus", "exact number"),
    (f"{PINNED}, numa_nodes: 3", "numa_nodes", "expected one of 1, 2, 4, 5"),
    (f"{PINNED}, former_vcpus: [20]", "former_vcpus.0", "the size that VMs have today"),
    (
        "cpu_policy: dedicated, vcpus: 18, numa_nodes: 2, former_vcpus: [20, 15]",
        "former_vcpus.1",
        "cannot be split evenly over 2",
    ),
    ("former_vcpus: [20]", "former_vcpus", "any number of vCPUs"),
    (f"{PINNED}, former_vcpus: [18, 18]", "former_vcpus", "each value once"),
    (f"{PINNED}, former_vcpus: 18", "former_vcpus", "such as [20]"),
    ("vcpus: many, former_vcpus: [20]", "vcpus", "a whole number of vCPUs"),
    (f"{PINNED}, former_vcpus: [many]", "former_vcpus.0", "a whole number of vCPUs"),
    ("numa_nodes: 2", "numa_nodes", "any size"),
    (
        (
            "cpu_policy: dedicated, vcpus: 30, numa_nodes: 3, disk: {source: volume}, "
            "flavors: {name: 'x{memory_gb}', memory_gb: [96, 64]}"
        ),
        "flavors.sizes.1.memory_gb",
        "64 GiB cannot be split evenly over 3 NUMA nodes",
        "4x20",
    ),
    (
        (
            "cpu_policy: dedicated, vcpus: 30, numa_nodes: 2, mem_page_size: 1GB, "
            "disk: {source: volume}, flavors: {name: 'x{memory_gb}', memory_gb: "
            "[96, 65]}"
        ),
        "flavors.sizes.1.memory_gb",
        "65 GiB make 33280 MiB on each of 2 NUMA nodes, no whole number",
        "4x20",
    ),
    (f"{PINNED}, emulator_threads: isolate", "emulator_threads", "21 in all"),
    ("cpu_policy: dedicated, vcpus: 32", "vcpus", "no host of 2x20"),
    (f"{PINNED}, numa_nodes: 4", "vcpus", "on each of 4"),
    ("cpu_thread_policy: prefer", "cpu_thread_policy", "pinned VMs only"),
    ("emulator_threads: share", "emulator_threads", "pinned VMs only"),
    ("max_per_host: 2", "max_per_host", "pinned VMs only"),
    ("exclusive: host", "exclusive", "pinned VMs only"),
    ("smt: threads", "smt", "pinned VMs only"),
    (
        f"{PINNED}, cpu_thread_policy: isolate",
        "cpu_thread_policy",
        "sibling threads",
        "2x20x2",
    ),
    (
        f"{PINNED}, cpu_thread_policy: require",
        "cpu_thread_policy",
        "smt: threads",
        "2x20x2",
    ),
    ("default: true", "default", "general is the default class already"),
    (f"default: true, {PINNED}", "default", "cpu_policy: shared"),
    ("default: true, vcpus: 4", "vcpus", "any size"),
    ("disk: {volume_type: fast}", "disk.volume_type", "no effect"),
    (
        "flavors: {name: a, sizes: [{vcpus: 1, memory_gb: 1, root_gb: 0}]}",
        "flavors.sizes.0.root_gb",
        "only administrators",
    ),
    (
        f"{PINNED}, flavors: {{name: a, {SIZES}}}",
        "flavors.sizes.0.vcpus",
        "exactly 20",
    ),
    (
        "vcpus: 4, flavors: {name: same, memory_gb: [1, 2], root_gb: 5}",
        "flavors.name",
        "would both be called",
    ),
    *(
        (
            f'vcpus: 4, flavors: {{name: "{name}", memory_gb: [1], root_gb: 5}}',
            "flavors.name",
            words,
        )
        for name, words in (
            ("{cpus}", "no fields but {class}, {memory_gb}"),
            ("{vcpus:03}", "no fields but"),
            ("{", "no fields but"),
            ("{}", "no fields but"),
            ("{vcpus!r}", "no fields but"),
            ("{0}", "no fields but"),
            (" {vcpus}.{memory_gb}", "no space at either end"),
            ("a\\t{memory_gb}", "printable"),
            ("-{memory_gb}", "openstack client"),
        )
    ),
    # Keys of flavors that would be dropped in silence.
    ("flavors: {name: a, memory_gb: [4]}", "flavors.memory_gb", "use sizes"),
    (
        f"flavors: {{name: a, memory_gb: [4], {SIZES}}}",
        "flavors.memory_gb",
        "use sizes",
    ),
    (
        f"vcpus: 4, flavors: {{name: a, root_gb: 5, {SIZES}}}",
        "flavors.root_gb",
        "remove it",
    ),
    (
        "vcpus: 4, flavors: {name: a, root_gb: 5}",
        "flavors.root_gb",
        "memory_gb, which is missing",
    ),
    ("flavors: {name: a}", "flavors", "give sizes"),
    ("vcpus: x, flavors: {name: a, memory_gb: [4]}", "vcpus", "found 'x'"),
    (
        "cpu_policy: dedicated, flavors: {name: a, memory_gb: [4]}",
        "vcpus",
        "exact number",
    ),
)
EXCLUSIVE = (
    f"classes:\n{GENERAL}  a: {{{PINNED}, exclusive: host}}\n"
    "  b: {cpu_policy: dedicated, vcpus: 4}\n"
)
OF_SEVERAL = (
    ("classes: {x: {}}\n", "classes", "no class has default"),
    (
        (
            f"classes:\n  general: {{default: true, flavors: {SAME}}}\n"
            f"  x: {{flavors: {SAME}}}\n"
        ),
        "classes.x.flavors.name",
        "a flavor of class general already",
    ),
    (EXCLUSIVE, "managed_hosts", "perfvm:class"),
    (
        f"classes:\n{GENERAL}  hp-20: {{{PINNED}}}\n  hp_20: {{{PINNED}}}\n",
        "classes.hp_20",
        "is CUSTOM_PERFVM_SLOT_HP_20 to Placement, as class hp-20 is",
    ),
    (
        f"classes:\n{GENERAL}  hp: {{{PINNED}}}\n  elastic-2: {{{PINNED}}}\n",
        "classes.elastic-2",
        "CUSTOM_PERFVM_ELASTIC_2, which is a name of elastic hosts",
    ),
    (f"placement: units\nclasses:\n{GENERAL}", "placement", "found 0: use slots"),
)
SOUND = (
    # Former sizes need not fit today's hosts: those that run are where they are.
    f"classes:\n{GENERAL}  x: {{{PINNED}, former_vcpus: [18, 40]}}\n",
    (
        f"host_shape: 2x21\nclasses:\n{GENERAL}"
        f"  x: {{{PINNED}, emulator_threads: isolate}}\n"
    ),
    (
        f"host_shape: [2x20, 2x32]\nclasses:\n{GENERAL}"
        "  x: {cpu_policy: dedicated, vcpus: 32}\n"
    ),
    f"managed_hosts: labelled\n{EXCLUSIVE}",
)


def mistakes_of(text):
    """Return {path: message} of a policy text; {} for a valid one."""
    try:
        loader.parse(HEAD + text)
    except DocumentError as exc:
        return {".".join(mistake.path): mistake.message for mistake in exc.mistakes}
    return {}


class MistakesTest(testtools.TestCase):
    def check(self, text, path, words):
        found = mistakes_of(text)
        self.assertEqual([path], list(found), text)
        self.assertIn(words, found[path])

    def test_of_a_class(self):
        for keys, key, words, *shape in OF_A_CLASS:
            text = f"host_shape: {(shape or ['2x20'])[0]}\nclasses:\n{GENERAL}"
            self.check(f"{text}  x: {{{keys}}}\n", f"classes.x.{key}", words)

    def test_of_several(self):
        for text, path, words in OF_SEVERAL:
            self.check(text, path, words)

    def test_none(self):
        for text in SOUND:
            self.assertEqual({}, mistakes_of(text))
        self.assertEqual([], policy_mistakes(loader.load()))


class AcceptanceTest(testtools.TestCase):
    """Only codes that there are, and that break no guarantee, can be accepted."""

    def test_what_may_stay(self):
        for code in (codes.FLAVOR_LEFT_BEHIND, codes.FLAVORS_DIFFER, codes.NOT_SEEN):
            policy = loader.parse(f"{HEAD}accept: [{code}]\n")
            self.assertEqual((code,), policy.accept)
            self.assertEqual(policy, loader.parse(loader.dump(policy)))

    def test_mistakes(self):
        text = "accept: [audit.flavor_left_behnd, nonsense, audit.pins_overlap]\n"
        found = mistakes_of(text)
        self.assertEqual(["accept.0", "accept.1", "accept.2"], list(found))
        unknown, odd, critical = found.values()
        self.assertIn("did you mean audit.flavor_left_behind", unknown)
        self.assertIn("such as audit.flavor_changed", odd)
        self.assertIn("audit.pins_overlap is a failure", critical)
        for value in ("audit.stuck", "[1]", "[audit.stuck, audit.stuck]", "{a: b}"):
            self.assertEqual(1, len(mistakes_of(f"accept: {value}\n")))


class AdviceTest(testtools.TestCase):
    """What a valid policy costs is said."""

    def test_classes_that_fill_a_node_leave_nothing_to_the_host(self):
        (found,) = advice(loader.load())
        self.assertEqual(codes.NO_CPU_FOR_HOST, found.code)
        self.assertEqual("classes.high-performance.vcpus", ".".join(found.problem.path))
        self.assertIn("emulator threads", found.problem.message)

    def test_where_nodes_have_cpus_left(self):
        pinned = f"classes:\n{GENERAL}  x: {{{PINNED}, "
        for text, paths in (
            ("host_shape: 2x22\n", []),
            ("host_shape: 2x22\nplacement: units\n", ["placement"]),
            (
                f"host_shape: 2x22\n{pinned}emulator_threads: share}}\n",
                ["classes.x.emulator_threads"],
            ),
            (f"host_shape: 2x21x2\n{pinned}smt: threads}}\n", ["classes.x.smt"]),
        ):
            found = advice(loader.parse(HEAD + text))
            self.assertEqual(paths, [".".join(noted.problem.path) for noted in found])


class UnitsTest(testtools.TestCase):
    """What child providers cannot express."""

    def check(self, keys, key, words="", shape="2x20"):
        found = mistakes_of(
            f"placement: units\nhost_shape: {shape}\nclasses:\n{GENERAL}"
            f"  x: {{cpu_policy: dedicated, {keys}}}\n"
        )
        self.assertEqual([key] if key else [], list(found))
        self.assertIn(words, "".join(found.values()))

    def test_keys_of_the_class(self):
        self.check("vcpus: 20, exclusive: host", "")
        for exclusive in ("cell", "none"):
            keys = f"vcpus: 20, exclusive: {exclusive}"
            self.check(keys, "classes.x.exclusive", "use exclusive: host")
        keys = "vcpus: 20, exclusive: host, numa_nodes: 2"
        self.check(keys, "classes.x.numa_nodes", "use 1")

    def test_fewer_slots_declared_than_fit(self):
        for slots, key, words in (
            (1, "elastic.slots", "expected 2 or more"),
            (2, "", ""),
            ("null", "", ""),
            (26, "", ""),
        ):
            keys = f"vcpus: 20, exclusive: host}}\nelastic: {{slots: {slots}"
            self.check(keys, key, words)

    def test_more_slots_than_letters(self):
        words = "set max_per_host: 26 or less"
        for keys, shape, fault in (
            ("", "2x13", False),
            ("", "2x14", True),
            ("max_per_host: 26", "8x64", False),
            ("max_per_host: 27", "8x64", True),
        ):
            key = "classes.x.max_per_host" * fault
            of_x = f"vcpus: 1, exclusive: host, {keys}"
            self.check(of_x, key, words * fault, shape)
