# SPDX-License-Identifier: Apache-2.0
"""A project has as many high-performance VMs as its limit in Keystone says.

Nova and oslo.limit are real, and ask what stands for Keystone; the command makes the
limits there, and nova.conf says what is printed for it.
"""

from importlib.metadata import version

from nova import utils
from nova.limit import utils as nova_limits
from nova.tests.functional.api.client import OpenStackApiException
from oslo_limit import limit as oslo_limit
from oslo_utils import uuidutils
from packaging.version import Version

from nova_perfvm import constants as const
from nova_perfvm.generate.limits import limits_of, settings_of
from tests.functional import base, cells
from tests.functional.cells import flavor_of
from tests.functional.client import ClientMixin
from tests.functional.elastic import ElasticTest
from tests.functional.keystone import REGION, SERVICE, KeystoneFixture

HIGH = "high-performance"
# Before it nova.limit.utils._identity_client() takes the length of a generator.
LOOKS_UP = Version("34.0.0.dev0")


class LimitsMixin:
    """A cloud that enforces limits."""

    def start_cloud(self, **options):
        self.keystone = self.useFixture(KeystoneFixture())
        # As nova-manage limits migrate_to_unified_limits makes it.
        servers = {"service_id": SERVICE, "region_id": REGION, "id": "s"}
        servers |= {"resource_name": "servers", "default_limit": -1}
        self.keystone.known["registered_limits"].append(servers)
        # Older ones cannot look up the endpoint, and are told its ID.
        (endpoint,) = self.keystone.known["endpoints"]
        given = None if Version(version("nova")) >= LOOKS_UP else endpoint["id"]
        said = settings_of(limits_of(self.policy, {}, {}), REGION, given)
        options["options"] = options.get("options", {}) | {
            # Nova's tests have an endpoint of their own.
            ("oslo_limit", "endpoint_id"): None,
            **{setting.key: setting.values[0] for setting in said},
        }
        super().start_cloud(**options)
        identity = self.connection("nova", "reader").identity
        if hasattr(nova_limits, "IDENTITY_CLIENT"):
            self.patch(nova_limits, "IDENTITY_CLIENT", None)
            self.patch(utils, "get_sdk_adapter", lambda *_, **__: identity)
        self.patch(oslo_limit, "_SDK_CONNECTION", identity)

    def sync(self, *options):
        said = self.run_command("limit", "sync", *self.policy_file(), "--yes", *options)
        self.assertEqual(0, said[0], said)
        return said

    def registered(self):
        """Return the registered limits of the policy."""
        found = self.keystone.values("registered_limits")
        return {name: value for (name, _), value in found.items() if name != "servers"}

    def assert_over(self, resource, flavor, **options):
        """Ask for one VM more, which nova-api has to refuse."""
        exc = self.assertRaises(
            OpenStackApiException, self.cloud.boot, flavor, **options
        )
        self.assertEqual(403, exc.response.status_code)
        self.assertIn(f"Resource class:{resource} is over limit", exc.response.text)


class TestSlots(LimitsMixin, ClientMixin, ElasticTest):
    PLACEMENT = "slots"

    def test_so_many_and_no_more(self):
        self.cloud.start_configured("hp1", self.policy, "dedicated")
        self.cloud.start_configured("hp2", self.policy, "dedicated")
        self.cloud.start_host("g1", shared="0-39")
        project = self.cloud.api.project_id
        self.keystone.known["projects"].append({"id": project})
        # Without a registered limit nobody has any.
        self.assert_over("CUSTOM_PERFVM_SLOT", base.HP_64)
        self.boot(base.GENERAL_2)

        # Who asks for no number gets no limit.
        self.sync()
        self.assertEqual({"class:CUSTOM_PERFVM_SLOT": -1}, self.registered())
        self.boot(base.HP_64)
        self.sync("--default", f"{HIGH}=1")
        self.assert_over("CUSTOM_PERFVM_SLOT", base.HP_64)
        self.boot(base.GENERAL_2)

        self.sync("--project", project, f"{HIGH}=3")
        self.assertEqual({"class:CUSTOM_PERFVM_SLOT": 1}, self.registered())
        self.boot(base.HP_64)
        self.boot(base.HP_64)
        self.assert_over("CUSTOM_PERFVM_SLOT", base.HP_64)
        self.sync("--project", project, f"{HIGH}=0")
        self.assert_over("CUSTOM_PERFVM_SLOT", base.HP_64)
        self._what_is_in_the_way(project)

    def _what_is_in_the_way(self, project):
        self.assertIn("nothing to do", "".join(map(str, self.sync())))
        own = self.keystone.known["limits"][0]["id"]
        for words, *options in (
            (f"openstack limit delete {own}", "--default", f"{HIGH}=2"),
            ("--region", "--region", "Elsewhere"),
            ("GET /projects/p2: 404", "--project", "p2", f"{HIGH}=1"),
            ("expected CLASS=N", "--project", project, "1"),
            ("is not pinned", "--default", "general=1"),
        ):
            arguments = (*self.policy_file(), "--yes", *options)
            self.assert_command(1, words, "limit", "sync", *arguments)
        arguments = (
            *self.policy_file(),
            "--dry-run",
            "--project",
            project,
            f"{HIGH}=1",
        )
        self.assert_command(0, "was 0", "limit", "sync", *arguments)
        self.assertEqual([0], [*self.keystone.values("limits").values()])


class TestUnits(LimitsMixin, ClientMixin, ElasticTest):
    def test_general_vms_come_beside(self):
        for host in ("e1", "e2"):
            self.cloud.start_host(host, "2x20")
            self.enroll(host)
        self.sync("--default", f"{HIGH}=1")
        self.assertEqual({"class:CUSTOM_PERFVM_UNIT": 1998}, self.registered())

        self.boot(base.HP_64)
        self.assert_over("CUSTOM_PERFVM_UNIT", base.HP_64)
        self.boot(base.GENERAL_2)

    def take_units(self, general_vms):
        """Let the project have as many units as so many general VMs."""
        amount = {"resources": {const.RC_UNIT: general_vms}}
        children = self.view("e1").children
        body = {
            "allocations": {child.uuid: amount for child in children},
            "project_id": self.cloud.api.project_id,
            "user_id": self.cloud.api.project_id,
            "consumer_generation": None,
        }
        path = f"/allocations/{uuidutils.generate_uuid()}"
        self.api.placement("PUT", path, body)

    def test_500_general_vms(self):
        """A number for general VMs makes room for them; lowering it names projects."""
        self.cloud.start_host("e1", "2x20")
        self.enroll("e1")
        project = self.cloud.api.project_id
        self.keystone.known["projects"] += [{"id": project}, {"id": "another"}]
        self.take_units(498)
        said = self.sync("--default", f"{HIGH}=0")
        self.assertEqual({"class:CUSTOM_PERFVM_UNIT": 998}, self.registered())
        self.assertNotIn("already above it", str(said))
        self.boot(base.GENERAL_2)
        self.assert_over("CUSTOM_PERFVM_UNIT", base.GENERAL_2)

        self.sync("--default", f"{HIGH}=0", "--default", "general=500")
        self.boot(base.GENERAL_2)
        self.assert_over("CUSTOM_PERFVM_UNIT", base.GENERAL_2)

        said = str(self.sync("--default", f"{HIGH}=0"))
        self.assertIn(f"already above it: {project} has 1000", said)
        self.assertNotIn("another has", said)
        self.assert_over("CUSTOM_PERFVM_UNIT", base.GENERAL_2)


class TestCells(LimitsMixin, cells.CellsCase):
    HOSTS = ("h1",)

    def test_classes_are_counted_together(self):
        numbers = {"c4": 1, "c8": 0, "c16": 0, "c20": 1, "pair": 0}
        options = [f"--default={name}={n}" for name, n in numbers.items()]
        self.sync(*options)
        self.assertEqual(
            {
                "class:CUSTOM_PERFVM_CELL_CPU": 24,
                "class:CUSTOM_PERFVM_CELL_MEMORY_MB": -1,
            },
            self.registered(),
        )
        self.boot(flavor_of(20))
        self.assert_over("CUSTOM_PERFVM_CELL_CPU", flavor_of(8))
        self.boot(flavor_of(4))
        self.assert_over("CUSTOM_PERFVM_CELL_CPU", flavor_of(4))


class TestNone(LimitsMixin, ClientMixin, ElasticTest):
    PLACEMENT = "none"

    def test_cpus_count(self):
        self.cloud.start_configured("hp1", self.policy, "dedicated")
        self.cloud.start_host("g1", shared="0-39")
        self.sync("--default", f"{HIGH}=1")
        self.assertEqual({"class:PCPU": 20}, self.registered())

        self.boot(base.HP_64)
        self.assert_over("PCPU", base.HP_64)
        self.boot(base.GENERAL_2)
