# SPDX-License-Identifier: Apache-2.0
"""Violations planted in a real Nova and Placement, and found by the command."""

import json
import pathlib

import fixtures

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.policy import loader
from tests.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base, client, glance

STRANGER = "11111111-1111-4111-8111-111111111111"


class AuditMixin(client.ClientMixin):
    """Runs the audit with the policy of the test's cloud."""

    def audit(self, *options):
        """Return the exit status, and code and subject of what was found.

        All rows are left in ``rows``.
        """
        conf = "[placement]\nallocation_conflict_retry_count = 1\n"
        (path,) = self.files(conf)
        files = ("--policy", self.write_policy(), "--placement-conf", path)
        status, rows, stderr = self.run_json("audit", *files, *options)
        self.rows = rows
        self.assertRegex(stderr, r"\d\d checks on ")
        found = [(row["Code"], row["Subject"]) for row in rows]
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

        self._undo()
        self.servers.delete(high)
        self.assertEqual((0, []), self.audit())

    def _plant(self):
        """Do what an operator can do, and what is left over from others."""
        self.change_traits("hp1", less=[const.TRAIT_HIGH_PERFORMANCE])
        self.leak("g1", STRANGER)
        self.cloud.create_flavor("x", 1, 512, 1, {"prefvm:class": "high-performance"})
        changed = {"extra_specs": {"hw:watchdog_action": "reset"}}
        self.cloud.api.post_extra_spec(base.HP_64, changed)

    def _undo(self):
        """Do what the remedies say."""
        api = self.admin_api
        self.change_traits("hp1", more=[const.TRAIT_HIGH_PERFORMANCE])
        api.placement("DELETE", f"/allocations/{STRANGER}")
        child = self.provider("g1_perfvm_a")
        api.placement("DELETE", f"/resource_providers/{child}")
        self.cloud.api.delete_flavor("x")
        path = f"/flavors/{base.HP_64}/os-extra_specs/hw:watchdog_action"
        api.nova("DELETE", path)


class TestOrphans(AuditMixin, base.FunctionalTest):
    FLAVORS = ()
    RECENT = "nova_perfvm.cloud.snapshot._RECENT_S"

    def orphans(self):
        """Return evidence and remedy by the name of the provider."""
        _, rows, _ = self.run_json("audit", "--policy", self.write_policy())
        return {
            row["Subject"]: (row["Observed"], row["Remedy"])
            for row in rows
            if row["Code"] in {codes.ORPHANED_PROVIDER, codes.ORPHANED_CHILD}
        }

    def test_a_host_that_nova_has_not_mapped_yet(self):
        """Its nova-compute runs, and Nova lists no hypervisor of it."""
        # Nova must not be imported before the embedded cloud has prepared it.
        from nova import context, objects
        from nova.cmd import manage

        for host in ("g1", "g2"):
            self.cloud.start_configured(host, self.policy, "shared")
        self.leak("g2", STRANGER)
        child = self.provider("g2_perfvm_a")
        self.admin_api.placement("DELETE", f"/allocations/{STRANGER}")
        mapped = objects.HostMapping.get_by_host(context.get_admin_context(), "g2")
        manage.CellV2Commands().delete_host(mapped.cell_mapping.uuid, "g2")
        for recent in (3600, 0):
            with fixtures.MonkeyPatch(self.RECENT, recent):
                found = self.orphans()
            self.assertEqual({"g2", "g2_perfvm_a"}, found.keys())
            for evidence, remedy in found.values():
                self.assertIn("may belong to g2: Nova has", evidence)
                self.assertNotIn("delete", remedy)
                self.assertIn("nova-manage cell_v2 discover_hosts --verbose", remedy)

        manage.CellV2Commands().discover_hosts()
        self.admin_api.placement("DELETE", f"/resource_providers/{child}")
        self.assertEqual({}, self.orphans())

    def test_what_is_left_of_a_host(self):
        """It may be new, and its service not there yet, until an hour is over."""
        self.cloud.start_configured("g1", self.policy, "shared")
        made = self.admin_api.placement("POST", "/resource_providers", {"name": "old"})
        vcpus = {"VCPU": {"total": 40}}
        body = {"resource_provider_generation": 0, "inventories": vcpus}
        path = f"/resource_providers/{made['uuid']}"
        self.admin_api.placement("PUT", f"{path}/inventories", body)
        ((evidence, remedy),) = self.orphans().values()
        self.assertIn("it changed in the last hour", evidence)
        self.assertNotIn("delete", remedy)

        with fixtures.MonkeyPatch(self.RECENT, 0):
            ((_, remedy),) = self.orphans().values()
        self.assertEqual(f"openstack resource provider delete {made['uuid']}", remedy)


class TestImages(client.ClientMixin, base.FunctionalTest):
    """Whose images they are, Glance says."""

    FLAVORS = ()

    def audit(self):
        status, rows, stderr = self.run_json("audit")
        self.assertIn(" checks on ", stderr)
        found = [(row["Code"], row["Level"]) for row in rows]
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


class TestEmulatorThreads(AuditMixin, base.FunctionalTest):
    """Nova pins the CPU of isolated emulator threads on one NUMA node of a VM."""

    CLOUD = None
    FLAVORS = ()

    def test_two_vms_share_nodes_of_21_cpus(self):
        document = self.policy.as_document()
        document["classes"]["high-performance"] |= {
            "numa_nodes": 2,
            "emulator_threads": "isolate",
        }
        document["host_shape"] = "2x22"
        self.policy = loader.parse(json.dumps(document))
        self.start_cloud(enabled_filters=FILTERS_WITHOUT_PERFVM)
        self.create_flavors(base.HP_64)
        self.cloud.start_host("hp1", "2x21", dedicated="0-41")
        pins = [self.cloud.guest(server).pins for server in (self.boot(), self.boot())]
        self.assertEqual([20, 20], [len(cpus) for cpus in pins])
        self.audit()
        said = [row for row in self.rows if row["Code"] == codes.TOO_MANY_ON_CELL]
        self.assertEqual([], said)
