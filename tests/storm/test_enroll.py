# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Hosts made elastic, repaired and given back, on a real Nova and Placement.

Requests go through openstacksdk to both in-process APIs; only Keystone is not
there, so the session's authentication just says who asks.
"""

import concurrent.futures
import contextlib
import io
import json
import pathlib

import fixtures
import openstack
from keystoneauth1 import plugin, session
from openstackclient import shell
from osc_lib import clientmanager

from nova_perfvm import constants as const
from nova_perfvm.cloud import converge, observe
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.apply import Applier
from nova_perfvm.cloud.errors import CloudError, RefusedError
from nova_perfvm.reconcile import DISABLED_REASON
from nova_perfvm.reconcile.changes import AddUnits
from nova_perfvm.sandbox.embedded import FILTERS_WITHOUT_PERFVM
from nova_perfvm.sandbox.embedded.servers import ActionFailedError
from tests.functional import base

PLAIN_HP = "plain-hp"
PLAIN_GENERAL = "plain-general"

CLIENT_MANAGER = "openstackclient.common.clientmanager.ClientManager"
APPLIER = f"{Applier.__module__}.{Applier.__name__}"


class DeathError(BaseException):
    """A process that is gone: nothing of it runs any more."""


class Identity(plugin.BaseAuthPlugin):
    """What Nova's fixture wants to be told instead of a token."""

    def __init__(self, user, project, roles):
        super().__init__()
        self._headers = {
            "X-Auth-Token": user,
            "X-Auth-User": user,
            "X-Auth-Project-Id": project,
            "X-Roles": roles,
        }

    def get_headers(self, session, **kwargs):
        return self._headers


class ElasticTest(base.FunctionalTest):
    """A cloud with units, and a connection to it."""

    CLOUD = None
    PLACEMENT = "units"

    def setUp(self):
        super().setUp()
        self.path = self.write_policy()
        self.start_cloud(
            policy_file=self.path,
            disable_fallback_pcpu_query=False,
            options={("scheduler", "enable_isolated_aggregate_filtering"): True},
        )
        self.api = API(self.connection("admin", "admin,member,reader"))

    def connection(self, user, roles):
        """Connect to Nova and Placement of the cloud, as openstacksdk does."""
        client = self.cloud.api
        auth = Identity(user, client.project_id, roles)
        placement = self.cloud._services.placement.fixture.endpoint
        return openstack.connection.Connection(
            session=session.Session(auth=auth),
            compute_endpoint_override=client.base_url,
            placement_endpoint_override=placement,
        )

    def create_plain_flavors(self):
        """Create flavors as a cloud has them before it has units."""
        self.cloud.create_flavor(PLAIN_HP, 20, 65536, 0, base.CLAIMS_HP)
        self.cloud.create_flavor(PLAIN_GENERAL, 2, 4096, 40)

    def enroll(self, host, **options):
        return converge.enroll(self.api, self.policy, host, **options)

    def unenroll(self, host, **options):
        return converge.unenroll(self.api, host, **options)

    def view(self, host):
        return observe.view_host(self.api, host)

    def units(self, host):
        """Give the units in use, by child's letter and in their order."""
        return {
            child.name[-1]: sorted(child.units().values())
            for child in self.view(host).children
        }

    def service(self, host):
        (found,) = self.cloud.api.get_services(host=host, binary="nova-compute")
        return found["status"], found["disabled_reason"]

    def die_after(self, count):
        """Let the process die after so many changes, without any clean-up."""
        original = Applier.apply
        left = [count]

        def apply(applier, change):
            if not left[0]:
                raise DeathError(str(change))
            left[0] -= 1
            original(applier, change)

        return fixtures.MonkeyPatch(f"{APPLIER}.apply", apply)

    def allocations(self, server):
        """Give what a server has, by provider's name."""
        found = observe.allocation(self.api, server.id)["allocations"]
        providers = self.api.placement("GET", "/resource_providers")
        names = {p["uuid"]: p["name"] for p in providers["resource_providers"]}
        return {names[uuid]: entry["resources"] for uuid, entry in found.items()}

    def put(self, provider, what, **body):
        """Change a provider behind the back of everyone."""
        body["resource_provider_generation"] = provider.generation
        self.api.placement("PUT", f"/resource_providers/{provider.uuid}/{what}", body)

    def assert_elastic(self, host):
        """Look that a host serves either class, and none of it by chance."""
        view = self.view(host)
        self.assertTrue(view.enrolled)
        self.assertTrue(view.closed)
        self.assertEqual(
            [(f"{host}_perfvm_a", 1000, 1000), (f"{host}_perfvm_b", 1000, 1000)],
            sorted(
                (c.name, i.total, i.max_unit)
                for c in view.children
                for i in [c.inventories[const.RC_UNIT]]
            ),
        )
        self.assertEqual(("enabled", None), self.service(host))
        self.assertEqual(0, self.enroll(host))

    def assert_ordinary(self, host):
        """Look that nothing of the scheme is left on a host."""
        view = self.view(host)
        self.assertFalse(view.enrolled)
        self.assertEqual((), view.below)
        self.assertEqual((), view.isolated_by)
        self.assertEqual(frozenset(), view.root.aggregates)


class TestEnroll(ElasticTest):
    def test_high_performance_vms(self):
        self.cloud.start_host("h1")

        self.assertGreater(self.enroll("h1"), 0)

        self.assert_elastic("h1")
        self.assert_apart(self.boot(), self.boot())
        self.boot_refused(base.GENERAL_2)
        self.assertEqual({"a": [1000], "b": [1000]}, self.units("h1"))
        self.assertEqual(0, self.enroll("h1"))

    def test_general_vms(self):
        self.cloud.start_host("h1")
        self.enroll("h1")

        self.boot(base.GENERAL_2)
        self.boot(base.GENERAL_2)

        self.assertEqual({"a": [1, 1], "b": [1, 1]}, self.units("h1"))
        self.boot_refused()

    def test_plain_flavors_stay_away(self):
        self.create_plain_flavors()
        self.cloud.start_host("h1")
        self.enroll("h1")

        for flavor in (PLAIN_HP, PLAIN_GENERAL):
            self.boot_refused(flavor)
            self.boot_refused(flavor, az="nova:h1")

    def test_hosts_for_one_class(self):
        self.cloud.start_host("hp1", dedicated="0-39")
        self.cloud.start_host("general1", shared="0-39")
        self.enroll("hp1")
        self.enroll("general1", slots=0)

        high, general = self.boot(), self.boot(base.GENERAL_2)

        self.assertEqual(("hp1", "general1"), (high.host, general.host))
        self.boot_refused(base.GENERAL_2, host="hp1")
        self.boot_refused(host="general1")
        self.assertIn(const.TRAIT_HIGH_PERFORMANCE, self.view("hp1").root.traits)
        # Without the option, what was said before holds.
        self.assertEqual(0, self.enroll("general1"))

    def test_many_at_once(self):
        self.cloud.start_host("h1")
        self.cloud.start_host("h2")

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            runs = [pool.submit(self.enroll, host) for host in ("h1", "h2") * 3]
            for run in runs:
                run.result()

        self.assert_elastic("h1")
        self.assert_elastic("h2")
        (aggregate,) = observe.aggregates(self.api)
        self.assertEqual({"h1", "h2"}, aggregate.hosts)

    def test_enroll_and_unenroll_at_once(self):
        self.cloud.start_host("h1")

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for run in [
                pool.submit(self.enroll, "h1"),
                pool.submit(self.unenroll, "h1"),
            ]:
                # Neither can win for good; either may give up.
                run.exception()

        view = self.view("h1")
        self.assertTrue(view.closed or not view.enrolled)
        self.enroll("h1")
        self.assert_elastic("h1")

    def test_repair(self):
        self.cloud.start_host("h1")
        self.enroll("h1")
        for damage in (
            self._inflate_child,
            self._take_childs_trait,
            self._delete_child,
            self._take_roots_trait,
            self._leave_placements_aggregate,
            self._leave_aggregate,
            self._strange_child,
        ):
            with self.subTest(damage.__name__):
                damage(self.view("h1"))

                self.assertGreater(self.enroll("h1"), 0)

                self.assert_elastic("h1")

    def _inflate_child(self, view):
        inventory = {"total": 5000, "max_unit": 5000}
        self.put(
            view.children[0], "inventories", inventories={const.RC_UNIT: inventory}
        )

    def _take_childs_trait(self, view):
        self.put(view.children[0], "traits", traits=[])

    def _delete_child(self, view):
        uuid = view.children[0].uuid
        self.api.placement("DELETE", f"/resource_providers/{uuid}")

    def _take_roots_trait(self, view):
        traits = sorted(view.root.traits - {const.TRAIT_ELASTIC})
        self.put(view.root, "traits", traits=traits)

    def _leave_placements_aggregate(self, view):
        self.put(view.root, "aggregates", aggregates=[])

    def _leave_aggregate(self, view):
        number = view.isolated_by[0].id
        body = {"remove_host": {"host": "h1"}}
        self.api.nova("POST", f"/os-aggregates/{number}/action", body)

    def _strange_child(self, view):
        body = {"name": "h1_perfvm_c", "parent_provider_uuid": view.root.uuid}
        self.api.placement("POST", "/resource_providers", body)

    def test_death_between_any_two_steps(self):
        self.create_plain_flavors()
        self.cloud.start_host("h1")
        states = []
        for _ in range(30):
            try:
                with self.die_after(1):
                    self.enroll("h1")
                break
            except DeathError:
                view = self.view("h1")
                states.append((view.closed, view.enrolled))
                if not view.enrolled:
                    # Not "No valid host" while Placement has not heard of the
                    # trait: there Nova's scheduler fails.
                    self.assertEqual("ERROR", self.cloud.boot(base.HP_64).status)
                if view.closed:
                    self.boot_refused(PLAIN_GENERAL)

        # Closed to the one kind before it opens to the other.
        self.assertEqual(sorted(states), states)
        self.assertNotIn((False, True), states)
        self.assertGreater(states.count((True, False)), 5)
        self.assert_elastic("h1")

    def test_refuse_under_load(self):
        self.cloud.start_host("h1")
        self.enroll("h1")
        server = self.boot()
        before = self.view("h1")

        for refused in (
            lambda: self.enroll("h1", slots=0),
            lambda: self.unenroll("h1"),
        ):
            exc = self.assertRaises(RefusedError, refused)
            self.assertIn(server.name, str(exc))

        self.assertEqual(before, self.view("h1"))

    def test_nova_compute_leaves_the_children_alone(self):
        self.cloud.start_host("h1")
        self.enroll("h1")
        self.boot()
        before = self.view("h1").children

        self.cloud.run_periodics()
        self.cloud.restart_host("h1")
        self.cloud.run_periodics()

        self.assertEqual(before, self.view("h1").children)
        self.assert_elastic("h1")
        self.boot()

    def test_after_the_service_was_deleted(self):
        self.cloud.start_host("h1")
        self.enroll("h1")

        self.api.nova("DELETE", f"/os-services/{self.view('h1').service.id}")
        # Nova must not be imported before the embedded cloud has prepared it.
        from nova import context, objects

        # As nova-manage cell_v2 discover_hosts does for a host that is new.
        cell = self.cloud._services.host_mappings["h1"].cell_mapping
        admin = context.get_admin_context()
        objects.HostMapping(admin, host="h1", cell_mapping=cell).create()
        self.cloud.restart_host("h1")

        self.assertEqual((), self.view("h1").children)
        self.boot_refused()
        self.enroll("h1")
        self.assert_elastic("h1")
        self.boot()


class TestBackfill(ElasticTest):
    def setUp(self):
        super().setUp()
        self.create_plain_flavors()
        self.cloud.start_host("h1")

    def backfill(self, **options):
        return self.enroll("h1", backfill=True, **options)

    def test_high_performance_vms(self):
        first, second = self.boot(PLAIN_HP), self.boot(PLAIN_HP)
        before = [self.allocations(server) for server in (first, second)]

        exc = self.assertRaises(RefusedError, self.enroll, "h1")
        self.assertIn(first.name, str(exc))
        self.assertIn("--backfill", str(exc))
        self.assert_ordinary("h1")

        self.backfill()

        self.assert_elastic("h1")
        self.assertEqual({"a": [1000], "b": [1000]}, self.units("h1"))
        for server, had in zip((first, second), before, strict=True):
            has = self.allocations(server)
            self.assertEqual(had, {"h1": has.pop("h1")})
            self.assertEqual([{const.RC_UNIT: 1000}], list(has.values()))
        self.boot_refused(base.GENERAL_2)
        self.servers.delete(first)
        self.servers.delete(second)
        self.assertEqual({"a": [], "b": []}, self.units("h1"))
        self.boot(base.GENERAL_2)

    def test_general_vms(self):
        self.boot(PLAIN_GENERAL)
        server = self.boot(PLAIN_GENERAL)

        self.backfill()

        self.assert_elastic("h1")
        self.assertEqual({"a": [1, 1], "b": [1, 1]}, self.units("h1"))
        self.boot_refused()
        self.boot(base.GENERAL_2)
        # It runs as before, and is stopped, started and deleted as ever.
        self.servers.delete(server)
        self.assertEqual({"a": [1, 1], "b": [1, 1]}, self.units("h1"))

    def test_what_cannot_be(self):
        self.cloud.create_flavor("pinned-4", 4, 4096, 0, base.PINNED)
        with_filter = (PLAIN_HP, PLAIN_GENERAL)
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        for flavors, words in (
            (with_filter, "VMs of both classes"),
            (("pinned-4",), "owns CPUs and its flavor names no class"),
        ):
            with self.subTest(words):
                servers = [self.boot(flavor) for flavor in flavors]

                exc = self.assertRaises(RefusedError, self.backfill)

                self.assertIn(words, str(exc))
                for server in servers:
                    self.assertIn(server.name, str(exc))
                self.assert_ordinary("h1")
                for server in servers:
                    self.servers.delete(server)

    def test_a_server_in_the_middle_of_a_move(self):
        self.cloud.start_host("h2")
        server = self.boot(PLAIN_GENERAL, host="h1")
        self.servers.cold_migrate(server, "h2")

        for host in ("h1", "h2"):
            exc = self.assertRaises(RefusedError, self.enroll, host, backfill=True)
            self.assertIn("confirm or revert it", str(exc))
            self.assert_ordinary(host)

    def test_the_service_is_as_it_was_before(self):
        self.boot(PLAIN_GENERAL)
        number = self.view("h1").service.id
        body = {"status": "disabled", "disabled_reason": "a fan is broken"}
        self.api.nova("PUT", f"/os-services/{number}", body)

        self.backfill()

        self.assertEqual(("disabled", "a fan is broken"), self.service("h1"))

    def test_an_error_leaves_it_closed_and_the_service_on(self):
        self.boot(PLAIN_GENERAL)
        original = Applier.apply

        def apply(applier, change):
            if isinstance(change, AddUnits):
                self.assertEqual(("disabled", DISABLED_REASON), self.service("h1"))
                raise CloudError("Placement is gone")
            original(applier, change)

        with fixtures.MonkeyPatch(f"{APPLIER}.apply", apply):
            self.assertRaises(CloudError, self.backfill)

        self.assertEqual(("enabled", None), self.service("h1"))
        self.boot_refused()
        self.boot_refused(PLAIN_GENERAL)
        self.backfill()
        self.assert_elastic("h1")

    def test_death_between_any_two_steps(self):
        self.boot(PLAIN_GENERAL)
        self.boot(PLAIN_GENERAL)
        disabled = 0
        for _ in range(40):
            try:
                with self.die_after(1):
                    self.backfill()
                break
            except DeathError:
                view = self.view("h1")
                self.assertTrue(view.closed or not view.enrolled)
                disabled += view.service.interrupted
                if view.enrolled:
                    units = {"a": [1, 1], "b": [1, 1]}
                    self.assertEqual(units, self.units("h1"))

        self.assertGreater(disabled, 5)
        self.assert_elastic("h1")
        self.assertEqual({"a": [1, 1], "b": [1, 1]}, self.units("h1"))

    def test_a_vm_that_was_forced_in(self):
        """As by a forced move: it has no units, and so the host closes."""
        self.enroll("h1")
        server = self.boot(base.GENERAL_2)
        self._lose_units(server)
        self.assertEqual({"a": [], "b": []}, self.units("h1"))

        exc = self.assertRaises(RefusedError, self.enroll, "h1")
        self.assertIn(server.name, str(exc))
        self.backfill()

        self.assert_elastic("h1")
        self.assertEqual({"a": [1], "b": [1]}, self.units("h1"))

    def test_a_vm_that_slipped_in(self):
        """As on a request that was under way when the host was isolated."""
        original = Applier.apply

        def apply(applier, change):
            original(applier, change)
            if getattr(change, "opens", False):
                self._lose_units(self.boot(base.GENERAL_2))

        with fixtures.MonkeyPatch(f"{APPLIER}.apply", apply):
            self.assertRaises(RefusedError, self.enroll, "h1")

        self.assertFalse(self.view("h1").enrolled)
        self.boot_refused()
        self.boot_refused(PLAIN_GENERAL)
        self.backfill()
        self.assert_elastic("h1")

    def _lose_units(self, server):
        found = observe.allocation(self.api, server.id)
        root = self.view("h1").root.uuid
        body = {
            "allocations": {
                root: {"resources": found["allocations"][root]["resources"]}
            },
            "project_id": found["project_id"],
            "user_id": found["user_id"],
            "consumer_generation": found["consumer_generation"],
        }
        self.api.placement("PUT", f"/allocations/{server.id}", body)


class TestUnenroll(ElasticTest):
    def test_nothing_is_left(self):
        self.create_plain_flavors()
        self.cloud.start_host("h1")
        self.enroll("h1")

        self.assertGreater(self.unenroll("h1"), 0)

        self.assert_ordinary("h1")
        self.assertEqual((), observe.aggregates(self.api))
        self.assertEqual(0, self.unenroll("h1"))
        self.boot(PLAIN_HP)

    def test_death_between_any_two_steps(self):
        self.create_plain_flavors()
        self.cloud.start_host("h1")
        self.enroll("h1")
        for _ in range(30):
            try:
                with self.die_after(1):
                    self.unenroll("h1")
                break
            except DeathError:
                view = self.view("h1")
                if view.closed:
                    self.boot_refused(PLAIN_GENERAL)
                self.boot_refused()

        self.assert_ordinary("h1")


class TestCommands(ElasticTest):
    """The openstack client itself, in this process, without Keystone."""

    def setUp(self):
        super().setUp()
        self.create_plain_flavors()
        self.cloud.start_host("h1")

    def run_command(self, *arguments, user="admin", roles="admin,member,reader"):
        """Run the client, and give its exit status and what it printed."""
        connection = self.connection(user, roles)
        # The client keeps what make_client gave for the life of its process.
        vars(clientmanager.ClientManager)["perfvm"]._handle = None

        def setup_auth(manager):
            manager.session = connection.session
            manager.sdk_connection = connection

        stdout, stderr = io.StringIO(), io.StringIO()
        with (
            fixtures.MonkeyPatch(f"{CLIENT_MANAGER}.setup_auth", setup_auth),
            # Each run adds one for its own stderr.
            fixtures.MonkeyPatch("logging.root.handlers", []),
            fixtures.MonkeyPatch("sys.stdin", io.StringIO()),
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
        ):
            status = shell.main(["--os-auth-type", "none", "perfvm", *arguments])
        self.assertNotIn("Traceback", stderr.getvalue())
        return status, stdout.getvalue(), stderr.getvalue()

    def policy_file(self):
        return ["--policy", self.path]

    def assert_command(self, status, words, *arguments, **identity):
        """Run a command, and look what it says and how it ends."""
        ended, *said = self.run_command(*arguments, **identity)
        self.assertEqual(status, ended, said)
        self.assertIn(words, "".join(said))

    def test_enroll_and_unenroll(self):
        enroll = ["host", "enroll", "h1", *self.policy_file()]

        self.assert_command(0, "would put h1 into aggregate", *enroll, "--dry-run")
        self.assert_command(1, "add --yes", *enroll)
        self.assert_ordinary("h1")
        self.assert_command(0, "h1 is enrolled", *enroll, "--yes")
        self.assert_elastic("h1")
        self.assert_command(0, "nothing to do", *enroll, "--yes")
        server = self.boot(base.GENERAL_2)
        unenroll = ["host", "unenroll", "h1", "--yes"]
        self.assert_command(1, server.name, *unenroll)
        self.servers.delete(server)
        self.assert_command(0, "no longer enrolled", *unenroll)
        self.assert_ordinary("h1")

    def test_errors_are_one_line(self):
        enroll = ["host", "enroll", *self.policy_file(), "--yes"]
        member = {"user": "member", "roles": "member,reader"}
        for words, arguments, identity in (
            ("no compute host nowhere", [*enroll, "nowhere"], {}),
            ("rights of an administrator", [*enroll, "h1"], member),
            ("placement: slots", ["host", "enroll", "h1", "--yes"], {}),
            ("gives a host 0 to 2", [*enroll, "h1", "--slots", "3"], {}),
            ("rights of an administrator", ["preflight"], member),
        ):
            with self.subTest(words):
                status, stdout, stderr = self.run_command(*arguments, **identity)

                self.assertEqual((1, ""), (status, stdout))
                self.assertEqual(1, len(stderr.splitlines()), stderr)
                self.assertIn(words, stderr)

    def test_preflight(self):
        server = self.boot(PLAIN_GENERAL)
        nova, placement = self.files(
            "[scheduler]\nenable_isolated_aggregate_filtering = True\n",
            "[placement]\nallocation_conflict_retry_count = 1\n",
        )
        check = ["preflight", *self.policy_file(), "-f", "json"]
        files = ["--nova-conf", nova, "--placement-conf", placement]

        status, stdout, _ = self.run_command(*check, "h1")
        results = {row["Check"]: row for row in json.loads(stdout)}
        self.assertEqual(1, status)
        for title, expected, words in (
            ("Isolated aggregates are filtered", "UNKNOWN", "no API shows it"),
            ("Placement grants what it has", "UNKNOWN", "no API shows it"),
            ("VMs on these hosts carry units", "WARNING", server.name),
            ("Embedded flavors", "WARNING", server.name),
        ):
            self.assertEqual(expected, results[title]["Result"])
            self.assertIn(words, results[title]["Details"])

        self.servers.delete(server)
        self.enroll("h1")
        self.boot(base.GENERAL_2)
        self.assert_command(0, "SUCCESS", *check, *files)
        self._inflate(self.view("h1"))
        self.assert_command(2, "FAILURE", *check, *files)

    def files(self, *texts):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for number, text in enumerate(texts):
            path = directory / str(number)
            path.write_text(text)
            yield str(path)

    def _inflate(self, view):
        inventory = {"total": 5000, "max_unit": 5000}
        child = view.children[0]
        self.put(child, "inventories", inventories={const.RC_UNIT: inventory})

    def test_rollback_with_vms_running(self):
        self.cloud.start_host("h2")
        self.cloud.start_host("plain")
        self.enroll("h1")
        self.enroll("h2")
        high = self.boot(host="h1")
        general = self.boot(base.GENERAL_2, host="h2")
        before = [self.allocations(server) for server in (high, general)]

        self.assert_command(1, high.name, "rollback", "--yes")
        self.assert_command(
            0, "would take the units out", "rollback", "--strip-units", "--dry-run"
        )
        self.assert_elastic("h1")
        status, _, stderr = self.run_command("rollback", "--strip-units", "--yes")

        self.assertEqual(0, status, stderr)
        # What it cannot change is said.
        self.assertIn(base.HP_64, stderr)
        self.assertIn(high.name, stderr)
        for host in ("h1", "h2"):
            self.assert_ordinary(host)
        self.assertEqual((), observe.aggregates(self.api))
        for server, had in zip((high, general), before, strict=True):
            self.assertEqual("ACTIVE", self.servers.show(server).status)
            (host,) = (name for name in had if name == server.host)
            self.assertEqual({host: had[host]}, self.allocations(server))
        self.assert_high_performance(high)
        self.assert_command(0, "nothing to do", "rollback", "--yes")

        # Their flavors still ask for units: only a resize gets them to move.
        exc = self.assertRaises(ActionFailedError, self.servers.cold_migrate, high)
        self.assertIn("No valid host", str(exc))
        high = self.servers.confirm(self.servers.resize(high, PLAIN_HP))
        self.servers.confirm(self.servers.cold_migrate(high))
        self.servers.delete(general)
        self.assertEqual(0, self.cloud.usages("h2")["VCPU"])

        # Now that nothing asks for them, the names can go, too.
        self.assertLess({const.RC_UNIT}, observe.names(self.api))
        for flavor in (base.HP_64, base.GENERAL_2):
            self.cloud.api.delete_flavor(flavor)
        self.assert_command(
            0, f"delete trait {const.TRAIT_ELASTIC}", "rollback", "--yes"
        )
        self.assertEqual({const.TRAIT_HIGH_PERFORMANCE}, observe.names(self.api))
