# SPDX-License-Identifier: Apache-2.0
"""Violations planted in a real Nova and Placement, and found by the command."""

import json
import pathlib
import uuid

import fixtures

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.cloud import observe
from nova_perfvm.cloud.api import API
from nova_perfvm.sandbox.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base, client, glance
from tests.functional.elastic import ElasticTest

STRANGER = "11111111-1111-4111-8111-111111111111"


class AuditMixin(client.ClientMixin):
    """Runs the audit with the policy of the test's cloud."""

    def audit(self, *options):
        """Return the exit status, and code and subject of what was found."""
        conf = "[placement]\nallocation_conflict_retry_count = 1\n"
        (path,) = self.files(conf)
        status, stdout, stderr = self.run_command(
            "audit",
            "-f",
            "json",
            "--policy",
            self.write_policy(),
            "--placement-conf",
            path,
            *options,
        )
        self.assertIn("16 checks on ", stderr)
        found = [(row["Code"], row["Subject"]) for row in json.loads(stdout)]
        # There is no Glance beside this cloud.
        self.assertIn((codes.NOT_SEEN, "images"), found)
        found.remove((codes.NOT_SEEN, "images"))
        return status, found


class TestSlots(AuditMixin, base.FunctionalTest):
    PLACEMENT = "slots"

    def test_planted_violations(self):
        self.cloud.start_configured("hp1", self.policy, "dedicated")
        self.cloud.start_configured("g1", self.policy, "shared")
        self.boot()
        high = self.boot()
        general = self.boot(base.GENERAL_2)

        self.assertEqual((0, []), self.audit())

        self._plant()
        expected = [
            (codes.FLAVOR_CHANGED, f"{high.name} ({high.id})"),
            (codes.NEAR_MISS, "flavor x"),
            (codes.TRAIT_DIFFERS, "hp1"),
            (codes.LEAKED_ALLOCATION, STRANGER),
            (codes.ORPHANED_CHILD, "g1_perfvm_a"),
        ]
        status, found = self.audit()
        self.assertEqual(1, status)
        self.assertLessEqual(set(expected), set(found))
        self.assertNotIn(general.name, str(found))

        # The same without a cloud.
        path = str(pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "file")
        self.assertEqual(0, self.run_command("snapshot", "save", path)[0])
        self.assertEqual((status, found), self.audit("--snapshot", path))

        self._undo(high)
        self.servers.delete(high)
        self.assertEqual((0, []), self.audit())

    def _plant(self):
        """Do what an operator can do, and what is left over from others."""
        api = self.api = API(self.connection("admin", "admin"))
        self.hp1, self.g1 = (self._provider(name) for name in ("hp1", "g1"))
        self._set_traits(set(), {const.TRAIT_HIGH_PERFORMANCE})
        body = {
            "allocations": {self.g1: {"resources": {"VCPU": 1}}},
            "project_id": STRANGER,
            "user_id": STRANGER,
            "consumer_generation": None,
        }
        api.placement("PUT", f"/allocations/{STRANGER}", body)
        body = {"name": "g1_perfvm_a", "parent_provider_uuid": self.g1}
        api.placement("POST", "/resource_providers", body)
        self.cloud.create_flavor("x", 1, 512, 1, {"prefvm:class": "high-performance"})
        changed = {"extra_specs": {"hw:watchdog_action": "reset"}}
        self.cloud.api.post_extra_spec(base.HP_64, changed)

    def _undo(self, server):
        """Do what the remedies say."""
        self._set_traits({const.TRAIT_HIGH_PERFORMANCE}, set())
        self.api.placement("DELETE", f"/allocations/{STRANGER}")
        child = self._provider("g1_perfvm_a")
        self.api.placement("DELETE", f"/resource_providers/{child}")
        self.cloud.api.delete_flavor("x")
        path = f"/flavors/{base.HP_64}/os-extra_specs/hw:watchdog_action"
        self.api.nova("DELETE", path)

    def _provider(self, name):
        path = f"/resource_providers?name={name}"
        (found,) = self.api.placement("GET", path, key="resource_providers")
        return found["uuid"]

    def _set_traits(self, more, less):
        path = f"/resource_providers/{self.hp1}/traits"
        body = self.api.placement("GET", path)
        body["traits"] = sorted(set(body["traits"]) - less | more)
        self.api.placement("PUT", path, body)


class TestRootDisks(AuditMixin, base.FunctionalTest):
    """Nova shows the image also of a server whose root disk is a volume."""

    PLACEMENT = "slots"

    def test_volumes_and_images(self):
        self.cloud.start_configured("hp1", self.policy, "dedicated", memory_gb=500)
        self.cloud.start_configured("hp2", self.policy, "dedicated", memory_gb=500)
        original = self.boot(host="hp1")
        snapshot = self.cloud.api.post_server_action(
            original.id, {"createImage": {"name": "snapshot"}}
        )
        # The filter knows better than the API shows.
        of_snapshot = self.boot(image=snapshot["image_id"], from_volume=False)
        both = self.boot(properties={"imageRef": self.cloud.image})
        for server in (of_snapshot, both):
            self.assertTrue(self.cloud.api.get_server(server.id)["image"])
        self.assertEqual((0, []), self.audit())

        local = self.boot(from_volume=False, az="nova:hp2")
        volume = {"volumeAttachment": {"volumeId": str(uuid.uuid4())}}
        self.cloud.api.api_post(f"/servers/{local.id}/os-volume_attachments", volume)
        self.assertEqual(
            (1, [("audit.not_of_class", f"{local.name} ({local.id})")]), self.audit()
        )


class TestImages(client.ClientMixin, base.FunctionalTest):
    """Whose images they are, Glance says."""

    FLAVORS = ()

    def audit(self):
        status, stdout, stderr = self.run_command("audit", "-f", "json")
        self.assertIn(" checks on ", stderr)
        found = [(row["Code"], row["Level"]) for row in json.loads(stdout)]
        found.remove((codes.RETRY_COUNT_UNKNOWN, "unknown"))
        return status, found

    def test_tenants_images_are_noted(self):
        self.glance = self.useFixture(glance.GlanceFixture())
        off = {const.IMAGE_VIF_MULTIQUEUE: "false", "owner": "tenant"}
        # Whatever a tenant writes on it, and whoever may use it.
        tags = ["nova-perfvm"]
        for visibility in ("private", "shared", "community"):
            self.glance.add(visibility, tags, visibility=visibility, **off)
        note = (codes.TENANT_IMAGE, "note")
        self.assertEqual((0, [note] * 3), self.audit())

        for members in (
            {"visibility": "public"},
            {"visibility": "private", "owner": self.cloud.api.project_id},
        ):
            with self.subTest(members):
                image = self.glance.add(**(off | members))
                status, found = self.audit()
                warning = (codes.IMAGE_CONFLICT, "warning")
                self.assertEqual((1, [warning, *[note] * 3]), (status, found))
                del self.glance.images[image["id"]]


class TestWithoutFilter(AuditMixin, base.FunctionalTest):
    CLOUD = {  # noqa: RUF012
        "enabled_filters": FILTERS_WITHOUT_PERFVM,
        "disable_fallback_pcpu_query": False,
    }

    def test_three_and_a_stranger(self):
        self.cloud.start_host("h1", "4x20", memory_gb=1000)
        for _ in range(3):
            self.boot()
        self.boot(base.GENERAL_2, az="nova:h1")

        status, found = self.audit()

        self.assertEqual(2, status)
        self.assertEqual(
            [(codes.CLASSES_MIXED, "h1"), (codes.TOO_MANY_ON_HOST, "h1")],
            sorted(found),
        )

        status, stdout, stderr = self.run_command(
            "audit", user="member", roles="member,reader"
        )
        self.assertEqual((3, "", 1), (status, stdout, len(stderr.splitlines())))
        self.assertIn("rights of an administrator", stderr)


class TestUnits(AuditMixin, ElasticTest):
    def test_elastic_hosts(self):
        for host in ("h1", "h2"):
            self.cloud.start_host(host)
            self.enroll(host)
        self.boot(host="h1")
        self.boot(base.GENERAL_2, host="h2")
        self.assertEqual((0, []), self.audit())

        view = self.view("h1")
        self.put(view.root, "aggregates", aggregates=[])
        self.put(view.children[0], "traits", traits=[])

        status, found = self.audit()
        self.assertEqual(2, status)
        self.assertLessEqual(
            {(codes.HOST_NOT_ISOLATED, "h1"), (codes.CHILDREN_DIFFER, "h1")},
            set(found),
        )

    def test_a_server_with_the_units_of_another_class(self):
        """One that holds a child whole leaves the other to high-performance VMs."""
        self.cloud.start_host("h1")
        self.enroll("h1")
        server = self.boot(base.GENERAL_2)
        self.assertEqual((0, []), self.audit())

        first, second = sorted(self.view("h1").children, key=lambda c: c.name)
        body = observe.allocation(self.api, server.id)
        body["allocations"][first.uuid]["resources"][const.RC_UNIT] = 1000
        del body["allocations"][second.uuid]
        self.api.placement("PUT", f"/allocations/{server.id}", body)

        name = f"{server.name} ({server.id})"
        self.assertEqual((1, [(codes.CLAIMED_TOO_MUCH, name)]), self.audit())
        # Placement does not keep them apart any more, only the filter does.
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        self.assertEqual("h1", self.boot().host)
        status, found = self.audit()
        self.assertEqual(2, status)
        self.assertIn((codes.CLASSES_MIXED, "h1"), found)

    def test_servers_without_units_on_a_host_that_is_not_enrolled(self):
        """As rollback leaves them, or a compute service that was deleted."""
        self.cloud.start_host("h1")
        self.enroll("h1")
        server = self.boot()
        self.assertEqual((0, []), self.audit())

        self.unenroll("h1", strip=True)

        expected = (2, [(codes.NOT_CLAIMED, f"{server.name} ({server.id})")])
        path = str(pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "file")
        for delete in (False, True):
            if delete:
                self.cloud.api.delete_flavor(base.HP_64)
            self.assertEqual(0, self.run_command("snapshot", "save", path)[0])
            for options in ((), ("--snapshot", path)):
                with self.subTest(flavor_deleted=delete, options=options):
                    self.assertEqual(expected, self.audit(*options))

        # What the remedy says.
        self.enroll("h1", backfill=True)
        self.assertEqual((0, []), self.audit())
