# SPDX-License-Identifier: Apache-2.0
"""Provider config files mean to us what they mean to nova-compute."""

import copy
import dataclasses
import logging
import pathlib
import random
import tempfile
from unittest import mock

import testtools
import yaml
from nova.compute import provider_config as nova
from nova.compute import provider_tree, resource_tracker

from nova_perfvm import findings as codes
from nova_perfvm.cloud import nova_rules
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import provider_files
from nova_perfvm.facts.snapshot import Inventory, Provider
from nova_perfvm.measure import provider_config
from nova_perfvm.measure.collect import hypervisor
from tests.unit.measure import hosts
from tests.unit.measure.checks.host.case import POLICY, having

UUID = "11111111-2222-4333-8444-555555555555"
DOCUMENT = yaml.safe_load(hosts.PROVIDER_YAML)
(PROVIDER,) = DOCUMENT["providers"]


def document(*providers, **changes):
    return {**DOCUMENT, "providers": list(providers), **changes}


def provider(total=2, traits=("CUSTOM_PERFVM_A",), **pid):
    """Return an entry; without a total it has traits alone, or nothing."""
    items = [{"CUSTOM_PERFVM_SLOT": {"total": total}}] if total else []
    return {
        "identification": pid or {"uuid": "$COMPUTE_NODE"},
        "inventories": {"additional": items},
        "traits": {"additional": list(traits)},
    }


def slots(**inventory):
    return [{"CUSTOM_PERFVM_SLOT": inventory}]


def with_inventory(*items):
    return document({**PROVIDER, "inventories": {"additional": list(items)}})


def with_traits(traits):
    return document({**PROVIDER, "traits": {"additional": traits}})


NAMED, OTHER = provider(3, name="compute1"), provider(4, name="compute2")
# {what it shows: content of the file, as text or data}
FILES = {
    "as host config writes it": hosts.PROVIDER_YAML,
    "two named": document(NAMED, OTHER),
    "default and named": document(PROVIDER, NAMED),
    "identified by UUID": document(provider(uuid=UUID)),
    "a later minor version": document(PROVIDER, meta={"schema_version": "1.7"}),
    "unknown keys of the file": document(PROVIDER, ours=1),
    "unknown keys of a provider": document({**PROVIDER, "ours": 1}),
    "no providers": {"meta": DOCUMENT["meta"]},
    "an entry without effect": document(provider(0, ())),
    "no inventories": document(provider(0)),
    "a total of 2.0": with_inventory(*slots(total=2.0)),
    "unquoted version": hosts.PROVIDER_YAML.replace("'1.0'", "1.0"),
    "another major version": document(PROVIDER, meta={"schema_version": "2.0"}),
    "odd version": document(PROVIDER, meta={"schema_version": "1.x"}),
    "no version": document(PROVIDER, meta={}),
    "no meta": {"providers": [PROVIDER]},
    "empty file": "",
    "comments alone": "# to come\n",
    "a list": [PROVIDER],
    "no YAML": "- [",
    "tabs": "meta:\n\tschema_version: '1.0'\n",
    "traits as a string": with_traits("CUSTOM_A"),
    "a trait of Nova's": with_traits(["HW_CPU_X86_AVX2"]),
    "a trait in small letters": with_traits(["custom_a"]),
    "a trait that is a number": with_traits([1]),
    "a trait of 256 characters": with_traits(["CUSTOM_" + "A" * 249]),
    "a trait of 255 characters": with_traits(["CUSTOM_" + "A" * 248]),
    "a class of Nova's": with_inventory({"VCPU": {"total": 1}}),
    "a class in small letters": with_inventory({"custom_a": {"total": 1}}),
    "a class that is a number": with_inventory({1: {"total": 1}}),
    "missing total": with_inventory(*slots(reserved=0)),
    "a total as text": with_inventory(*slots(total="2")),
    "a total that is true": with_inventory(*slots(total=True)),
    "an unknown key of an inventory": with_inventory(*slots(total=2, max=1)),
    "an inventory of nothing": with_inventory({"CUSTOM_A": None}),
    "inventories as a mapping": document(
        {**PROVIDER, "inventories": {"additional": slots(total=2)[0]}}
    ),
    "an inventory as a name": with_inventory("CUSTOM_PERFVM_SLOT"),
    "two alike": document(NAMED, NAMED),
    "two defaults": document(PROVIDER, PROVIDER),
    "name and UUID of one entry": document(provider(name="compute1", uuid=UUID)),
    "no identification": document({"traits": {"additional": ["CUSTOM_A"]}}),
    "empty identification": document({**PROVIDER, "identification": {}}),
    "identified by what is unknown": document(provider(hostname="compute1")),
    "an empty name": document(provider(name="")),
    "no UUID": document(provider(uuid="compute1")),
    "default of another spelling": document(provider(uuid="$compute_node")),
    "the key that is Nova's own": document(PROVIDER, __source_file="x"),
}
ODD = (None, 0, 3, 2.0, "x", True, {}, "CUSTOM_B", "$COMPUTE_NODE", "1.0", 1.0, UUID)


def text_of(content):
    return content if isinstance(content, str) else yaml.safe_dump(content)


def by_nova(*texts):
    """Return Nova's entries of files; None if nova-compute does not start."""
    with tempfile.TemporaryDirectory() as directory:
        for number, text in enumerate(texts):
            pathlib.Path(directory, f"{number}.yaml").write_text(text)
        try:
            found = nova.get_provider_configs(directory)
        except Exception:  # noqa: BLE001
            return None
    for entry in found.values():
        for item in entry.get("inventories", {}).get("additional", []):
            # Text has no rc in it, and is no inventory in what follows.
            if not isinstance(item, dict):
                return None
    return found


def files_of(*texts):
    return {f"/etc/nova/provider_config/{n}.yaml": t for n, t in enumerate(texts)}


def mutated(rng):
    """Return a sample of which something is replaced, taken away, doubled or added."""
    sound = list(FILES.values())[1 : list(FILES).index("unquoted version")]
    found = copy.deepcopy(rng.choice(sound))
    places = []

    def walk(node):
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    walk(found)
    for node, key in rng.choices(places, k=1):
        kind = rng.randrange(4)
        if kind == 0 and isinstance(node, dict) and key in node:
            node[rng.choice(["ours", "name", "uuid", "CUSTOM_B", "total"])] = node[key]
        elif kind == 1 and isinstance(node, list) and key < len(node):
            node.append(copy.deepcopy(node[key]))
        elif kind == 2 and isinstance(node, dict):
            node.pop(key, None)
        elif isinstance(node, dict) or key < len(node):
            node[key] = rng.choice(ODD)
    return found


class RefusalTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        # Nova warns of entries without effect.
        logging.disable(logging.WARNING)
        self.addCleanup(logging.disable, logging.NOTSET)

    def assert_alike(self, text):
        theirs, files = by_nova(text), files_of(text)
        ours = provider_config.refusal_of(files)
        self.assertEqual(theirs is None, bool(ours), (text, ours))
        self.assertNotIn("\n", ours)
        self.assertLess(len(ours), 700)
        if theirs is not None:
            read = provider_config.read(files, provider_config.refusal_of)
            self.assertEqual(set(theirs), set(read.entries), text)
        return theirs is None

    def test_files_as_nova_compute_takes_them(self):
        refused = {}
        for name, content in FILES.items():
            refused[name] = self.assert_alike(text_of(content))
        taken = {name for name, is_refused in refused.items() if not is_refused}
        names = list(FILES)
        expected = {*names[: names.index("unquoted version")]}
        self.assertEqual(expected | {"a trait of 255 characters"}, taken)

    def test_mutated_files(self):
        rng = random.Random(39)
        found = [self.assert_alike(text_of(mutated(rng))) for _ in range(120)]
        self.assertGreater(found.count(True), 30)
        self.assertGreater(found.count(False), 20)

    def test_two_files_of_one_provider(self):
        texts = [yaml.safe_dump(document(NAMED))] * 2
        self.assertIsNone(by_nova(*texts))
        first, second = files_of(*texts)
        self.assertEqual(
            f"provider compute1 is defined in {first} and again in {second}",
            provider_config.refusal_of(files_of(*texts)),
        )

    def test_where_nova_is_installed_its_sentence_is_told(self):
        for name, sentence in (
            ("unquoted version", "Unable to detect schema version: {'meta': {"),
            ("two alike", "Provider compute1 has multiple definitions in source"),
            ("a trait of Nova's", "Invalid traits, only custom traits are allowed: ['"),
            ("missing total", "The provider config file 0.yaml did not pass validat"),
            ("an inventory as a name", "Invalid resource class, only custom"),
        ):
            files = files_of(text_of(FILES[name]))
            self.assertIn(sentence, nova_rules.refusal_of(files))
        self.assertEqual("", nova_rules.refusal_of(files_of(hosts.PROVIDER_YAML)))
        for said in (nova_rules.refusal_of, provider_config.refusal_of):
            self.assertNotEqual("", said(files_of("a: \udc80")))

    def test_elsewhere_our_own(self):
        files = files_of(text_of(FILES["missing total"]))
        with mock.patch.dict("sys.modules", {"nova.compute": None}):
            said = nova_rules.refusal_of(files)
        self.assertEqual(provider_config.refusal_of(files), said)
        self.assertIn(
            "0.yaml did not pass validation: $.providers[0].inventories.additional[0]"
            ".CUSTOM_PERFVM_SLOT: 'total' is a required property",
            said,
        )


CHILD = "99999999-2222-4333-8444-555555555555"
NAMES = ("compute1", "compute1_x")
# {what it shows: entries}
ARRANGEMENTS = {
    "default": [PROVIDER],
    "by name": [NAMED, OTHER],
    "by UUID": [provider(5, uuid=hosts.PROVIDER), OTHER],
    "name before the default": [PROVIDER, NAMED],
    "UUID before the default": [provider(5, uuid=hosts.PROVIDER), PROVIDER],
    "name without effect": [PROVIDER, provider(0, (), name="compute1")],
    "another host's": [OTHER],
    "the default for one and another host's": [PROVIDER, OTHER],
    "name and UUID": [NAMED, provider(5, uuid=hosts.PROVIDER)],
    "UUID as a name": [provider(6, name=hosts.PROVIDER)],
    "child by name": [PROVIDER, provider(7, ("CUSTOM_PERFVM_C",), name="compute1_x")],
    "child by UUID": [provider(7, ("CUSTOM_PERFVM_C",), uuid=CHILD)],
    "child alone": [provider(0, ("CUSTOM_PERFVM_C",), name="compute1_x")],
    "nothing": [],
}


def placement_by_nova(entries):
    """Return {provider: its totals and traits} that nova-compute reports.

    None if it cannot.
    """
    tree = provider_tree.ProviderTree()
    tree.new_root("compute1", hosts.PROVIDER)
    tree.new_child("compute1_x", "compute1", uuid=CHILD)
    tree.update_traits("compute1", ["COMPUTE_NODE"])
    tracker = mock.Mock(absent_providers=set())
    tracker._get_providers_to_update = lambda *args: (
        resource_tracker.ResourceTracker._get_providers_to_update(tracker, *args)
    )
    try:
        resource_tracker.ResourceTracker._merge_provider_configs(
            tracker, by_nova(yaml.safe_dump(document(*entries))), tree
        )
    except ValueError:
        return None
    found = {}
    for name in NAMES:
        data = tree.data(name)
        totals = {rc: inventory["total"] for rc, inventory in data.inventory.items()}
        found[name] = (totals, data.traits - {"COMPUTE_NODE", "OWNER_NOVA"})
    return found


class ArrangementsTest(testtools.TestCase):
    """The audit expects of Placement what nova-compute would report to it."""

    def setUp(self):
        super().setUp()
        logging.disable(logging.WARNING)
        self.addCleanup(logging.disable, logging.NOTSET)

    def found(self, entries, shown):
        """Audit a cloud whose Placement shows {provider: totals and traits}."""
        text = yaml.safe_dump(document(*entries))
        seen = hypervisor.facts(having(hosts.roomy(), {hosts.PROVIDER_PATH: text}))
        snapshot = hosts.snapshot()
        providers = tuple(
            Provider(
                *(uuid, name, 1),
                inventories={rc: Inventory(n, n) for rc, n in shown[name][0].items()},
                traits=frozenset(shown[name][1]),
                parent=parent,
                root=hosts.PROVIDER,
            )
            for name, uuid, parent in (
                ("compute1", hosts.PROVIDER, None),
                ("compute1_x", CHILD, hosts.PROVIDER),
            )
        )
        snapshot = dataclasses.replace(snapshot, providers=providers)
        subject = audit.Subject(POLICY, snapshot, collected=(seen,))
        return list(provider_files.check(subject))

    def test_as_nova_compute_reports(self):
        for name, entries in ARRANGEMENTS.items():
            reported = placement_by_nova(entries)
            if reported is None:
                self.assertEqual("name and UUID", name)
                (found,) = self.found(entries, dict.fromkeys(NAMES, ({}, ())))
                self.assertEqual(codes.PROVIDER_FILES_REFUSED, found.code)
                continue
            self.assertEqual([], self.found(entries, reported))
            for where, (totals, traits) in reported.items():
                lacking = reported | {where: ({}, set())}
                more = reported | {where: ({**totals, "CUSTOM_PERFVM_Y": 1}, traits)}
                if totals or traits:
                    (found,) = self.found(entries, lacking)
                    self.assertEqual(codes.PROVIDER_FILES_DIFFER, found.code)
                # Of nested ones others may add to what the files say.
                many = int(where == "compute1")
                self.assertEqual(many, len(self.found(entries, more)))
