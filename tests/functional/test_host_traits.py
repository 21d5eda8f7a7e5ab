# SPDX-License-Identifier: Apache-2.0
"""VMs of a class with host_traits come to hosts with these traits, and to no other."""

from nova_perfvm.policy import loader
from tests.functional import base
from tests.functional.test_audit import AuditMixin

TRAIT = "HW_NIC_SRIOV"
BY_HAND = "hp-without-trait"


class HostTraitsTest(AuditMixin, base.FunctionalTest):
    CLOUD = None
    PLACEMENT = "slots"
    FLAVORS = (base.HP_64,)

    def setUp(self):
        super().setUp()
        classes = self.policy.as_document()["classes"]
        classes["high-performance"]["host_traits"] = [TRAIT]
        path = self.write_policy(classes=classes)
        self.policy = loader.load(path)
        self.start_cloud(policy_file=path)
        for name in ("hp1", "hp2"):
            self.cloud.start_configured(name, self.policy, "dedicated", shape="2x20")
        self.change_traits("hp2", more=[TRAIT])

    def make_by_hand(self):
        """Create a flavor of the class that does not require the trait."""
        flavors = base.generate_flavors(self.policy)
        (flavor,) = (f for f in flavors if f.name == base.HP_64)
        specs = dict(flavor.extra_specs)
        self.assertEqual("required", specs.pop(f"trait:{TRAIT}"))
        self.cloud.create_flavor(BY_HAND, flavor.vcpus, flavor.memory_mb, 0, specs)

    def test_only_hosts_that_have_it(self):
        servers = [self.boot() for _ in range(2)]
        self.assertEqual({"hp2"}, {server.host for server in servers})
        self.assert_not_filtered(self.boot_refused())
        self.assertEqual((0, []), self.audit())
        self._explain_says_why_and_what_to_do()

        self.change_traits("hp1", more=[TRAIT])
        self.assertEqual("hp1", self.boot().host)

    def test_a_flavor_made_by_hand(self):
        self.make_by_hand()
        self.assert_reason(self.boot_refused(BY_HAND), "flavor.traits")
        image = self.cloud.create_image(**{f"trait:{TRAIT}": "required"})
        other = self.boot(BY_HAND, image=image)
        self.assertEqual("hp2", other.host)
        self.servers.delete(other)

        server = self.boot(BY_HAND, az="nova:hp1")
        name = f"{server.name} ({server.id})"

        status, found = self.audit()

        self.assertEqual(1, status)
        self.assertEqual(
            [
                ("audit.contract_differs", name),
                ("audit.wrong_host", name),
                ("audit.flavor_differs", f"flavor {BY_HAND}"),
            ],
            found,
        )
        # No flavor of the policy can be forced there.
        self.boot_refused(az="nova:hp1")

    def _explain_says_why_and_what_to_do(self):
        policy = ("--policy", self.write_policy())
        explain = ("explain", "--flavor", base.HP_64)
        status, rows, stderr = self.run_json(*explain, *policy)

        self.assertEqual(1, status, stderr)
        reasons = {tuple(row["Hosts"]): row["Reason"] for row in rows}
        self.assertIn("host.trait_missing", reasons["hp1",])
        self.assertNotIn("host.trait_missing", reasons["hp2",])
        self.assertIn("VMs of class high-performance run only on hosts with", str(rows))
