# SPDX-License-Identifier: Apache-2.0
"""Elastic hosts, which serve one class at a time."""

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.cloud.api import API
from tests import documented
from tests.sandbox import base, looking, tutorial
from tests.sandbox.base import GENERAL, HP
from tests.sandbox.documented import DocumentedCommands


class ElasticTest(DocumentedCommands, looking.LookingMixin, base.SandboxTest):
    # Tempest's tests run in the same sandbox in CI, and want two elastic hosts.
    HOSTS = "2xelastic:2x20,1xdedicated:2x20"

    def test_one_class_and_then_the_other(self):
        nodes = set()
        for _ in range(2):
            server = self.boot(HP, host="elastic1")
            nodes.add(self.assert_high_performance(server)[0])
        self.assertEqual({0, 1}, nodes)
        for flavor in (HP, GENERAL):
            self.boot_refused(flavor, host="elastic1")
        self.boot_refused(GENERAL, host="dedicated1")
        self.assertEqual("elastic2", base.host_of(self.boot(GENERAL)))

        self.delete_all()

        for _ in range(2):
            self.boot(GENERAL, host="elastic1")
        self.boot_refused(HP, host="elastic1")

    def test_a_plan_makes_room(self):
        """One general VM is in the way of a high-performance one on each host."""
        full = [self.boot(HP, host="dedicated1") for _ in range(2)]
        general = {self.boot(GENERAL, host=f"elastic{n}")["id"] for n in (1, 2)}
        self.boot_refused(HP)
        plan = ("plan free", "--flavor", HP)
        status, planned, _ = self.look(*plan)
        (move,) = planned
        self.assertEqual((0, "live"), (status, move["Migration"]))

        status, (made,), told = self.look(*plan, "--execute", "--yes")

        self.assertEqual((0, "done"), (status, made["State"]), told)
        self.assertEqual((0, []), self.audit()[:2])
        self.assertEqual(
            {("ACTIVE", made["To"])}, {self.status_and_host(one) for one in general}
        )
        self.assertEqual(made["From"], base.host_of(self.boot(HP)))
        for server in full:
            self.assertEqual(
                ("ACTIVE", "dedicated1"), self.status_and_host(server["id"])
            )

    def status_and_host(self, server):
        shown = self.show(server)
        return shown["status"], base.host_of(shown)

    def test_the_tutorial(self):
        """doc/source/user/tutorial.rst: each command, and what it prints."""
        self.addCleanup(self.forget_the_tutorial)
        tutorial.follow(self, tutorial.PAGE, documented.of(self))

    def forget_the_tutorial(self):
        """Delete what it has made beside servers."""
        for flavor in self.compute.flavors():
            if flavor.name == "hp.10c.64g":
                self.compute.delete_flavor(flavor)

    def test_commands_of_the_documentation(self):
        page = documented.of(self)
        enroll = "openstack perfvm host enroll HOST... --policy perfvm.yaml"
        self.assertIn(enroll, [command.text for command in page])

        self.command("openstack", "perfvm", "host", "unenroll", "elastic1", "--yes")
        self.boot_refused(HP, host="elastic1")
        printed = self.documented(page, asking=[enroll], HOST="elastic1")

        self.assertIn("Proceed? [y/N]", printed[enroll])
        self.boot(HP, host="elastic1")

    def test_preflight_finds_nothing(self):
        etc = self.sandbox.layout.etc
        self.command(
            *("openstack", "perfvm", "preflight"),
            *("--policy", str(self.sandbox.layout.policy)),
            *("--nova-conf", str(etc / "nova" / "scheduler.conf")),
            *("--placement-conf", str(etc / "placement" / "placement.conf")),
        )

    def test_explain_agrees_with_the_scheduler(self):
        self.assert_agreement(
            often=[
                "host.class_conflict",
                const.NOVA_AVAILABILITY_ZONE,
                const.PLACEMENT_ISOLATED,
                const.PLACEMENT_NO_INVENTORY,
                const.PLACEMENT_RESOURCE,
                const.PLACEMENT_TRAIT_FORBIDDEN,
                const.PLACEMENT_UNITS,
                const.SERVICE_DISABLED,
                const.SERVICE_DOWN,
            ],
            logged=["flavor.resources", "request.image_trait"],
        )

    def test_what_breaks_the_exclusion_is_found(self):
        server = self.boot(HP, host="elastic1")["id"]
        self.assertEqual((0, []), self.audit()[:2])
        api = self.api = API(self.sandbox.connect())
        query = "/resource_providers?name=elastic1"
        (root,) = api.placement("GET", query, key="resource_providers")
        query = f"/resource_providers?in_tree={root['uuid']}"
        tree = api.placement("GET", query, key="resource_providers")
        child = next(found for found in tree if found["parent_provider_uuid"])
        held = api.placement("GET", f"/allocations/{server}")
        lacking = {root["uuid"]: held["allocations"][root["uuid"]]}
        self.put(f"/allocations/{server}", allocations=lacking)
        self.put(f"/resource_providers/{root['uuid']}/aggregates", aggregates=[])
        self.put(f"/resource_providers/{child['uuid']}/traits", traits=[])

        status, found, _ = self.audit()

        expected = {
            codes.UNITS_LACKING,
            codes.HOST_NOT_ISOLATED,
            codes.CHILDREN_DIFFER,
        }
        found = {row["Code"] for row in found if row["Subject"] == "elastic1"}
        self.assertEqual((2, set()), (status, expected - found))

        # What the remedies say.
        policy = str(self.sandbox.layout.policy)
        enroll = ("openstack", "perfvm", "host", "enroll", "elastic1", "--backfill")
        self.command(*enroll, "--policy", policy, "--yes")
        self.assertEqual((0, []), self.audit()[:2])

    def put(self, path, **changes):
        """Change a document of Placement's."""
        before = self.api.placement("GET", path)
        self.api.placement("PUT", path, before | changes)
