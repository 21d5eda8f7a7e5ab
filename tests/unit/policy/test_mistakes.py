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
    (
        f"{PINNED}, numa_nodes: 3",
        "numa_nodes",
        "20 vCPUs cannot be split evenly over 3",
    ),
    (f"{PINNED}, former_vcpus: [20]", "former_vcpus", "the current vcpus of the class"),
    (
        "cpu_policy: dedicated, vcpus: 18, numa_nodes: 2, former_vcpus: [20, 15]",
        "former_vcpus",
        "15 vCPUs cannot be split evenly over 2",
    ),
    ("former_vcpus: [20]", "former_vcpus", "VMs are of any size"),
    (f"{PINNED}, former_vcpus: [18, 18]", "former_vcpus", "each value once"),
    (f"{PINNED}, former_vcpus: 18", "former_vcpus", "such as [20]"),
    (f"{PINNED}, former_vcpus: [many]", "former_vcpus.0", "a whole number of vCPUs"),
    ("numa_nodes: 2", "numa_nodes", "VMs are of any size"),
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
        f"{PINNED}, emulator_threads: isolate",
        "emulator_threads",
        "a VM needs 21 CPUs per NUMA node (with one for emulator_threads",
    ),
    ("cpu_policy: dedicated, vcpus: 32", "vcpus", "no host of 2x20 offers that"),
    (f"{PINNED}, numa_nodes: 4", "vcpus", "isolate; numa_nodes: 4)"),
    *(
        (f"{key}: {value}", key, "pinned VMs only")
        for key, value in (
            ("cpu_thread_policy", "prefer"),
            ("emulator_threads", "share"),
            ("max_per_host", "2"),
            ("exclusive", "host"),
            ("smt", "threads"),
        )
    ),
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
    (
        f"{PINNED}, smt: threads, cpu_thread_policy: require",
        "cpu_thread_policy",
        "no host_shape has SMT: use prefer or null",
    ),
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
        "2 sizes would be called",
    ),
    *(
        (
            f'vcpus: 4, flavors: {{name: "{name}", memory_gb: [1], root_gb: 5}}',
            "flavors.name",
            words,
        )
        for name, words in (
            ("{cpus}", "no fields but {class}, {memory_gb}"),
            *((name, "no fields but") for name in ("{vcpus:03}", "{", "{}", "{0}")),
            ("{vcpus!r}", "no fields but"),
            *((name, "printable") for name in (" {vcpus}", "a\\t", "-{memory_gb}")),
        )
    ),
    # Keys of flavors that would be dropped in silence.
    ("flavors: {name: a, memory_gb: [4]}", "flavors.memory_gb", "use sizes"),
    ("flavors: {name: a}", "flavors", "declares no flavor: give sizes"),
    (
        "vcpus: 4, flavors: {name: a, root_gb: 5}",
        "flavors.root_gb",
        "memory_gb, which is missing",
    ),
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
    ("classes: {x: {}}\n", "classes", "expected one class with default: true"),
    (f"classes:\n{GENERAL}  x: {{default: true}}\n", "classes", "expected one class"),
    *(
        (f"classes:\n  x: {{default: true, {keys}}}\n", "classes.x.default", "no vcpus")
        for keys in (PINNED, "vcpus: 4")
    ),
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
        "CUSTOM_PERFVM_HP_20 in Placement, which another class",
    ),
    (
        f"classes:\n{GENERAL}  hp: {{{PINNED}}}\n  elastic-2: {{{PINNED}}}\n",
        "classes.elastic-2",
        "becomes CUSTOM_PERFVM_ELASTIC_2 in Placement",
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

    def test_threads_are_named_where_they_would_do(self):
        pinned = "cpu_policy: dedicated, vcpus: 20"
        for shape, named in (
            ("2x10x2", True),
            ("2x20", None),
            ("2x10", False),
            ("2x9x2", False),
        ):
            text = f"host_shape: {shape}\nclasses:\n{GENERAL}  x: {{{pinned}}}\n"
            said = mistakes_of(text).get("classes.x.vcpus")
            found = None if said is None else "smt: threads" in said
            self.assertEqual(named, found, shape)

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
        for value, words in (
            ("[nonsense]", "found 'nonsense', expected the code of a finding"),
            ("[audit.pins_overlap]", "lists under WARNING or UNKNOWN"),
            ("audit.stuck", "a list of codes"),
            ("[1]", "found 1, expected the code of a finding"),
            ("[audit.stuck, audit.stuck]", "each value once"),
        ):
            (found,) = mistakes_of(f"accept: {value}\n").values()
            self.assertIn(words, found)


class AdviceTest(testtools.TestCase):
    """What a valid policy costs is said."""

    def test_each(self):
        pinned = f"classes:\n{GENERAL}  x: {{{PINNED}, "
        fast = "classes.high-performance.vcpus"
        for text, expected in (
            ("", [(codes.NO_CPU_FOR_HOST, fast)]),
            ("host_shape: 2x22\n", []),
            (
                "host_shape: 2x22\nplacement: units\n",
                [(codes.RESTS_ON_FALLBACK, "placement")],
            ),
            (
                f"host_shape: 2x22\n{pinned}emulator_threads: share}}\n",
                [(codes.EMULATOR_THREADS_FLOAT, "classes.x.emulator_threads")],
            ),
        ):
            found = advice(loader.parse(HEAD + text))
            self.assertEqual(
                expected, [(one.code, one.observed.partition(":")[0]) for one in found]
            )


class UnitsTest(testtools.TestCase):
    """What child providers cannot express."""

    def test_each(self):
        host, letters = "vcpus: 20, exclusive: host", "vcpus: 1, exclusive: host"
        elastic, most = f"{host}}}\nelastic: {{slots:", "set max_per_host: 26 or less"
        for keys, key, words, *shape in (
            (host, "", ""),
            ("vcpus: 20, exclusive: cell", "classes.x.exclusive", "only host is"),
            ("vcpus: 20", "classes.x.exclusive", "only host is possible"),
            (f"{host}, numa_nodes: 2", "classes.x.numa_nodes", "only 1 is possible"),
            (f"{elastic} 1", "elastic.slots", "expected 2 or more"),
            *((f"{elastic} {slots}", "", "") for slots in (2, "null", 26)),
            (letters, "", "", "2x13"),
            (letters, "classes.x.max_per_host", most, "2x14"),
            (f"{letters}, max_per_host: 26", "", "", "8x64"),
            (f"{letters}, max_per_host: 27", "classes.x.max_per_host", most, "8x64"),
        ):
            found = mistakes_of(
                f"placement: units\nhost_shape: {(shape or ['2x20'])[0]}\nclasses:\n"
                f"{GENERAL}  x: {{cpu_policy: dedicated, {keys}}}\n"
            )
            self.assertEqual([key] if key else [], list(found))
            self.assertIn(words, "".join(found.values()))
