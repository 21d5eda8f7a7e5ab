# SPDX-License-Identifier: Apache-2.0
"""A scheme is one object: what is known of one is asked of it alone."""

import ast
import dataclasses
import pathlib
import re
import typing

import testtools

import nova_perfvm
from nova_perfvm.diagnose import audit, capacity
from nova_perfvm.facts.host_view import views_of
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.generate.hosts import generate
from nova_perfvm.placement import host_schemes, schemes
from nova_perfvm.placement.contract import contract
from nova_perfvm.policy import loader, model
from nova_perfvm.scheduler import filters
from tests.unit.facts.snapshot.clouds import Cloud
from tests.unit.generate.hosts.requests import host_request
from tests.unit.placement.tokens import HOSTS, TOKENS
from tests.unit.scheduler import states
from tests.unit.scheduler.test_filters import FilterCase

PACKAGE = pathlib.Path(nova_perfvm.__file__).parent
# The files that may know a scheme by its name, beside the sample of a policy.
KNOWING = {
    "placement/host_schemes/__init__.py",
    "placement/host_schemes/cells.py",
    "placement/host_schemes/units.py",
    "placement/schemes/__init__.py",
    "placement/schemes/units.py",
    "policy/model.py",
    "policy/placements.py",
    # It compares the hosts that each scheme needs.
    "sizing/plan.py",
}
NAMES = "|".join(schemes.SCHEMES)


def looks_at_the_key(node):
    """Return whether a piece of code compares or imports a scheme by its name."""
    if isinstance(node, ast.Compare) and not isinstance(node.ops[0], ast.IsNot):
        sides = [node.left, *node.comparators]
        return any(
            "placement" in {getattr(s, "attr", ""), getattr(s, "id", "")} for s in sides
        )
    if isinstance(node, ast.keyword) and node.arg == "placement":
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.ImportFrom):
        names = {f"{node.module}.{alias.name}" for alias in node.names}
        module = f"nova_perfvm.placement.(host_)?schemes.({NAMES})"
        return any(re.match(rf"{module}(\.|$)", name) for name in names)
    return isinstance(node, ast.Constant) and (
        node.value == "units"
        or bool(re.search(rf"^[^`]*placement: ({NAMES})", str(node.value)))
    )


def documented(tree):
    """Return the docstrings of a module, which may say what they like."""
    return {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }


def knowing_files():
    """Yield the files of the package that know a scheme by its name."""
    for path in sorted(PACKAGE.rglob("*")):
        known = False
        if path.suffix == ".py":
            tree = ast.parse(path.read_text())
            left_out = documented(tree)
            known = any(
                looks_at_the_key(node)
                for node in ast.walk(tree)
                if id(node) not in left_out
            )
        elif path.suffix == ".yml":
            known = bool(re.search(r"placement\s*[!=]=", path.read_text()))
        if known and path.name != "default.py":
            yield str(path.relative_to(PACKAGE))


class NamesTest(FilterCase):
    def test_the_policy_and_the_registry_have_the_same_names(self):
        self.assertEqual(typing.get_args(model.Placement), tuple(schemes.SCHEMES))

    def test_files_that_speak_of_each(self):
        for name, form in (
            ("doc/source/reference/words.rst", "``{}``"),
            ("doc/source/admin/guarantees.rst", "``placement: {}``"),
            ("doc/source/admin/limits.rst", "\n{} "),
            ("etc/nova_perfvm/perfvm.yaml", "#   {} "),
            ("tests/matrix/factors.py", '"{}"'),
        ):
            text = (PACKAGE.parent / name).read_text()
            for scheme in schemes.SCHEMES:
                self.assertTrue(form.format(scheme) in text, f"{name} lacks {scheme}")

    def test_no_other_file_knows_a_scheme(self):
        self.assertEqual(KNOWING, set(knowing_files()))


class EnrolledTest(testtools.TestCase):
    def test_another_scheme_is_told_by_its_trait_or_children(self):
        units = dataclasses.replace(loader.load(), placement="units")
        cloud = Cloud(units)
        cloud.add_elastic("h1")
        cloud.add_host("h2")
        for policy, host, expected in (
            (units, "h1", ""),
            (units, "h2", ""),
            (dataclasses.replace(units, placement="cells"), "h1", "units"),
            (dataclasses.replace(units, placement="cells"), "h2", ""),
        ):
            (view,) = [v for v in views_of(cloud.snapshot()) if v.host == host]
            found = host_schemes.enrolled_by_another(policy, view)
            self.assertEqual(expected, found, (policy.placement, host))


class SchemeMixin:
    """What holds under ``scheme``, of which a VM of 20 vCPUs takes ``amount``."""

    def setUp(self):
        super().setUp()
        self.policy = dataclasses.replace(loader.load(), placement=self.scheme.name)
        self.specs = {f.name: f.extra_specs for f in generate_flavors(self.policy)}

    def test_flavors_carry_the_contract(self):
        for vm_class, name in zip(
            self.policy.classes, ("hp.20c.64g", "g.2c.4g"), strict=True
        ):
            asked = contract(self.policy, vm_class, 65536).extra_specs()
            self.assertTrue(asked)
            self.assertLessEqual(asked.items(), self.specs[name].items())
        name = f"resources:{self.scheme.resource_class}"
        self.assertEqual(str(self.amount), self.specs["hp.20c.64g"][name])

    def test_hosts_offer_it(self):
        config = generate(host_request(policy=self.policy))
        provider = str(config.provider).replace("'", "")
        self.assertIn(f"{self.scheme.resource_class}: ", provider)

    def test_the_filter_refuses_what_lacks_it(self):
        judge = filters.PerfVMFilter()
        judge.policy = self.policy
        hosts = [states.host_state()]
        for specs, expected in ((self.specs["hp.20c.64g"], hosts), (None, [])):
            spec = states.request_spec(extra_specs=specs)
            self.assertEqual(expected, judge.filter_all(hosts, spec))

    def test_the_audit_finds_who_lacks_it(self):
        taken = self.scheme.resource_class
        cloud = Cloud(self.policy)
        cloud.add_host("hp1")
        cloud.add_host("g1", "shared")
        cloud.add_hp("a", "hp1")
        cloud.add_general("c", "g1")
        self.assertEqual([], self.codes(cloud))
        cloud.allocate("i-a", "hp1", {"PCPU": 20, "MEMORY_MB": 65536})
        self.assertEqual(["audit.not_claimed"], self.codes(cloud))
        cloud.allocate("i-a", "hp1", {"PCPU": 20, taken: 2 * self.amount})
        self.assertEqual(["audit.claimed_too_much"], self.codes(cloud))
        cloud.change_inventories("hp1", **{taken: None})
        self.assertIn("audit.inventory_differs", self.codes(cloud))

    def codes(self, cloud):
        """Return the codes of what the audit finds in a cloud."""
        right = {("placement", "allocation_conflict_retry_count"): "1"}
        subject = audit.Subject(self.policy, cloud.snapshot(), right)
        return [found.code for found in audit.run(subject).findings]

    def test_an_empty_host_has_it(self):
        found = self.hosts.inventory(self.policy, {"high-performance": 2})
        self.assertEqual({self.scheme.resource_class: str(2 * self.amount)}, found)

    def test_capacity_counts_it(self):
        cloud = Cloud(self.policy)
        cloud.add_host("hp1")
        cloud.add_hp("a", "hp1")
        (view,) = views_of(cloud.snapshot())
        self.assertEqual((2, 1), self.hosts.slots_seen(view.tree))
        (found,) = capacity.host_capacity(self.policy, cloud.snapshot())
        self.assertEqual((2, 1, 1), (found.total, found.used, found.free))
        cloud.change_inventories("hp1", **{self.scheme.resource_class: None})
        (found,) = capacity.host_capacity(self.policy, cloud.snapshot())
        self.assertEqual((1, 1, 0), (found.total, found.used, found.free))


class ToyTest(SchemeMixin, FilterCase):
    """A scheme that only its own file knows is like any other."""

    scheme, hosts, amount = TOKENS, HOSTS, 2

    def setUp(self):
        self.patch(schemes, "SCHEMES", schemes.SCHEMES | {TOKENS.name: TOKENS})
        known = host_schemes.HOST_SCHEMES | {TOKENS.name: HOSTS}
        self.patch(host_schemes, "HOST_SCHEMES", known)
        super().setUp()
