# SPDX-License-Identifier: Apache-2.0
"""What does not carry its class's contract does not get in, nor hide."""

import functools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.cloud import answers
from nova_perfvm.cloud.api import API
from nova_perfvm.policy import loader
from tests.embedded import FILTERS_WITHOUT_PERFVM, ActionFailedError, at_once
from tests.functional import base, client, glance
from tests.functional.elastic import PLAIN_GENERAL, ElasticTest
from tests.functional.test_audit import AuditMixin

NO_SLOT = "hp-without-slot"


class TestImageOpensElasticHost(client.ClientMixin, ElasticTest):
    """A tenant's image that requires the trait of elastic hosts."""

    def setUp(self):
        super().setUp()
        self.cloud.start_host("e1")
        self.enroll("e1")
        self.create_plain_flavors()
        (trait,) = (
            t for t in self.cloud.traits("e1") if t.startswith(const.TRAIT_ELASTIC)
        )
        self.trait = {f"trait:{trait}": "required"}
        self.image = self.cloud.create_image(**self.trait)

    def test_by_an_image_a_volume_or_a_rebuild(self):
        for from_volume in (False, True):
            refused = self.boot_refused(
                PLAIN_GENERAL, image=self.image, from_volume=from_volume
            )
            self.assert_reason(refused, "request.image_trait")
        self.boot_refused(PLAIN_GENERAL)
        self.assertEqual({"a": [], "b": []}, self.units("e1"))

        server = self.boot(base.GENERAL_2)
        error = self.assertRaises(
            ActionFailedError, self.servers.rebuild, server, self.image
        )
        self.assertIn("No valid host", error.detail)
        self.assert_reason(server, "request.image_trait")

    def test_beside_high_performance_vms_at_once(self):
        requests = [(base.HP_64, self.cloud.image), (PLAIN_GENERAL, self.image)] * 2
        flavors, images = zip(*requests, strict=True)
        for _ in range(2):
            servers = self.cloud.boot_at_once(flavors, images=images)

            running = [server for server in servers if server.status == "ACTIVE"]
            # Of two claims of one child at once the second may be refused.
            self.assertEqual({base.HP_64}, {server.flavor for server in running})
            self.assert_apart(*running)
            taken = [n for units in self.units("e1").values() for n in units]
            self.assertEqual([1000] * len(running), taken)
            at_once(self.servers.delete, servers)

    def test_a_forced_host_and_the_audit(self):
        """Nova shows the image of a server that boots of none of its volumes."""
        self.glance = self.useFixture(glance.GlanceFixture())
        self.glance.add(id=self.image, **self.trait)
        boot = functools.partial(
            self.cloud.boot, PLAIN_GENERAL, image=self.image, az="nova:e1"
        )
        local, volume = boot(), boot(from_volume=True)

        _, found, _ = self.run_json("audit", "--policy", self.path)

        (trait,) = (row for row in found if row["Code"] == "audit.image_trait")
        self.assertEqual(f"{local.name} ({local.id})", trait["Subject"])
        lacking = [r["Observed"] for r in found if r["Code"] == codes.UNITS_LACKING]
        for server in (local, volume):
            line = f"{server.name} ({server.id}) on e1 has no units"
            self.assertIn(line, lacking)
        self._cure(local, trait["Remedy"])

    def _cure(self, server, remedy):
        """Do what the audit says, and look that nothing less would do."""
        self.cloud.start_host("e2")
        self.enroll("e2")
        # Its owner takes the trait off.
        self.cloud._services.glance.images[self.image]["properties"] = {}
        resize = functools.partial(self.servers.resize, server, base.GENERAL_2)
        self.assertRaises(ActionFailedError, resize)
        self.assert_reason(server, "request.image_trait")

        self.assertIn("server rebuild --image IMAGE", remedy)
        self.servers.rebuild(server, self.cloud.image)
        self.assertEqual("e2", resize().host)


class TestIsolationIsOff(ElasticTest):
    """Nova does not look at isolated aggregates, and no host has a label."""

    def write_policy(self, **changes):
        return super().write_policy(managed_hosts="labelled", **changes)

    def start_cloud(self, **options):
        options["options"] = {
            ("scheduler", "enable_isolated_aggregate_filtering"): False
        }
        super().start_cloud(**options)

    def test_a_flavor_without_units_is_refused(self):
        self.cloud.start_host("e1")
        self.enroll("e1")
        self.create_plain_flavors()

        for where in ({}, {"host": "e1"}):
            server = self.boot_refused(PLAIN_GENERAL, **where)
            self.assert_reason(server, "host.units_lacking")

        self.assertEqual({"a": [], "b": []}, self.units("e1"))
        self.boot(base.GENERAL_2)


class TestFlavorWithoutSlot(AuditMixin, base.FunctionalTest):
    """A flavor that names the class and does not take its slot."""

    PLACEMENT = "slots"

    def setUp(self):
        super().setUp()
        self.cloud.start_configured(
            "hp1", self.policy, "dedicated", shape="2x40", memory_gb=1000
        )
        self.cloud.create_flavor(
            NO_SLOT,
            20,
            65536,
            0,
            base.CLAIMS_HP | {f"trait:{const.TRAIT_HIGH_PERFORMANCE}": "required"},
        )

    def test_two_schedulers_at_once_let_none_in(self):
        """The verdict rests on the flavor, however old the facts of the host are."""
        servers = self.cloud.boot_at_once([NO_SLOT] * 4)
        self.assertEqual({"ERROR"}, {server.status for server in servers})
        self.assert_reason(servers[0], "flavor.resources")
        self.boot()

    def test_the_audit_finds_it_afterwards(self):
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        server = self.boot(NO_SLOT)
        self.assertEqual(0, self.cloud.usages("hp1")[const.RC_SLOT])
        self.cloud.api.delete_flavor(NO_SLOT)
        name = f"{server.name} ({server.id})"
        expected = [(codes.NOT_CLAIMED, name), ("audit.contract_differs", name)]
        self.assertEqual((2, expected), self.audit())


class TestSeveralPinnedClasses(AuditMixin, base.FunctionalTest):
    """Slots of one class are none of another's, also for a forced host."""

    CLOUD = None
    PLACEMENT = "slots"
    FLAVORS = ("hp20", "hp8")

    def setUp(self):
        super().setUp()
        high = self.policy.as_document()["classes"]["high-performance"]
        keys = {k: v for k, v in high.items() if k != "flavors"}
        classes = {
            f"hp{vcpus}": keys
            | {
                "vcpus": vcpus,
                "max_per_host": cap,
                "flavors": {"name": f"hp{vcpus}", "memory_gb": [32], "root_gb": 0},
            }
            for vcpus, cap in ((20, 2), (8, 8))
        }
        classes["general"] = {"default": True}
        path = self.write_policy(classes=classes, managed_hosts="labelled")
        self.policy = loader.load(path)
        self.start_cloud(policy_file=path, enabled_filters=FILTERS_WITHOUT_PERFVM)
        self.cloud.start_configured(
            "h8", self.policy, "dedicated", shape="2x40", class_name="hp8"
        )

    def create_flavors(self, *names):
        # The process's validator knows the built-in policy's classes; at this
        # microversion nova-api asks none.
        before, self.cloud.api.microversion = self.cloud.api.microversion, "2.61"
        super().create_flavors(*names)
        self.cloud.api.microversion = before

    def test_each_class_keeps_its_own_and_its_cap_at_once(self):
        inventory = self.cloud.capacity("h8")
        self.assertEqual(8, inventory["CUSTOM_PERFVM_SLOT_HP8"])
        self.assertNotIn("CUSTOM_PERFVM_SLOT_HP20", inventory)
        self.assertIn("CUSTOM_PERFVM_HP8", self.cloud.traits("h8"))
        self.boot("hp8")
        for where in ({}, {"az": "nova:h8"}):
            self.boot_refused("hp20", **where)
        self.assertEqual(1, self.cloud.usages("h8")["CUSTOM_PERFVM_SLOT_HP8"])

        self.cloud.start_configured(
            "h20", self.policy, "dedicated", shape="2x40", class_name="hp20"
        )
        servers = self.cloud.boot_at_once(["hp20"] * 4)
        running = [server for server in servers if server.status == "ACTIVE"]
        self.assertEqual([("h20", "ACTIVE")] * 2, [(s.host, s.status) for s in running])

    def test_audit_and_capacity(self):
        self.cloud.start_configured(
            "h20", self.policy, "dedicated", shape="2x40", class_name="hp20"
        )
        for name in ("hp8", "hp20"):
            self.cloud.label_hosts(name, f"h{name[2:]}")
        self.boot("hp8")
        server = self.boot("hp20")

        self.assertEqual((0, []), self.audit())
        self.assertEqual({"h20 hp20": (2, 1, 1), "h8 hp8": (8, 1, 7)}, self.capacity())

        self.take_slot(server)
        expected = [(codes.NOT_CLAIMED, f"{server.name} ({server.id})")]
        self.assertEqual((2, expected), self.audit())
        self.boot("hp20")
        self.assertEqual((2, 2, 0), self.capacity()["h20 hp20"])

    def capacity(self):
        """Return slots, used and free ones, where a host has some of a class."""
        policy = ("--policy", self.write_policy())
        status, rows, _ = self.run_json("capacity", "show", *policy)
        self.assertEqual(0, status)
        return {
            f"{row['Host']} {row['Class']}": (row["Total"], row["Used"], row["Free"])
            for row in rows
            if row["Total"]
        }

    def take_slot(self, server):
        """Take the slot out of a server's allocation."""
        api = API(self.connection("admin", "admin"))
        body = answers.allocation(api, server.id)
        (of_host,) = body["allocations"].values()
        self.assertEqual(1, of_host["resources"].pop("CUSTOM_PERFVM_SLOT_HP20"))
        api.placement("PUT", f"/allocations/{server.id}", body)
