# SPDX-License-Identifier: Apache-2.0
"""What the tests of elastic hosts share."""

import functools
import threading

import fixtures
from nova.scheduler.client.report import SchedulerReportClient

from nova_perfvm import constants as const
from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.changes.unenroll import plan_unenroll
from nova_perfvm.cloud import answers, converge, live_hosts
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.apply import Applier
from tests.cloud import DEFAULT_FILTERS
from tests.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base
from tests.functional.client import SDKMixin

PLAIN_HP = "plain-hp"
PLAIN_GENERAL = "plain-general"

APPLIER = f"{Applier.__module__}.{Applier.__name__}"


class SameMoment(fixtures.Fixture):
    """So many requests all know their candidates before one of them claims.

    :param requests: how many there are
    """

    # It ends a wait for one that never comes.
    PATIENCE_S = 300

    def __init__(self, requests):
        super().__init__()
        self._barrier = threading.Barrier(requests)

    def _setUp(self):  # noqa: N802
        original = SchedulerReportClient.get_allocation_candidates

        def get_allocation_candidates(client, *args, **options):
            found = original(client, *args, **options)
            self._barrier.wait(self.PATIENCE_S)
            return found

        self.useFixture(
            fixtures.MonkeyPatch(
                "nova.scheduler.client.report.SchedulerReportClient."
                "get_allocation_candidates",
                get_allocation_candidates,
            )
        )


class CreatedAtOnce(fixtures.Fixture):
    """Nova creates aggregates so close together that none sees the other's name.

    Nova's tests let one transaction write at a time.  So two creations wait for each
    other before theirs begin, and then do not look whether the name is there; who is
    alone goes on in the end.
    """

    ALONE_S = 5

    def _setUp(self):  # noqa: N802
        # Nova must not be imported before the embedded cloud has prepared it.
        from nova.db.api import api, models
        from nova.objects import aggregate

        original = aggregate._aggregate_create_in_db
        both = threading.Barrier(2)

        def create(context, values, metadata=None):
            try:
                both.wait(self.ALONE_S)
            except threading.BrokenBarrierError:
                both.reset()
                return original(context, values, metadata)
            with api.context_manager.writer.using(context):
                made = models.Aggregate()
                made.update(values)
                made.save(context.session)
                made._hosts = made._metadata = []
                return made

        self.useFixture(
            fixtures.MonkeyPatch(
                "nova.objects.aggregate._aggregate_create_in_db", create
            )
        )


class DeathError(BaseException):
    """A process that is gone: nothing of it runs any more."""


class ElasticTest(SDKMixin, base.FunctionalTest):
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

    def create_plain_flavors(self):
        """Create flavors as a cloud has them before it has units."""
        self.cloud.create_flavor(PLAIN_HP, 20, 65536, 0, base.CLAIMS_HP)
        self.cloud.create_flavor(PLAIN_GENERAL, 2, 4096, 40)

    def boot_before(self, flavor, **options):
        """Boot a server as from before nova-scheduler knew a policy with units."""
        self.cloud.restart_scheduler(FILTERS_WITHOUT_PERFVM)
        server = self.boot(flavor, **options)
        self.cloud.restart_scheduler(DEFAULT_FILTERS)
        return server

    def enroll(self, host, **options):
        planner = functools.partial(plan_enroll, self.policy, **options)
        return converge.change_host(self.api, host, planner)

    def unenroll(self, host, **options):
        planner = functools.partial(plan_unenroll, **options)
        return converge.change_host(self.api, host, planner)

    def view(self, host):
        return live_hosts.read_host(self.api, host)

    def policy_file(self):
        return ["--policy", self.path]

    def delete_service(self, host):
        """Delete a compute service, and start the host as a new one."""
        self.api.nova("DELETE", f"/os-services/{self.view(host).compute.service}")
        # Nova must not be imported before the embedded cloud has prepared it.
        from nova import context, objects

        # As nova-manage cell_v2 discover_hosts does for a host that is new.
        cell = self.cloud._services.host_mappings[host].cell_mapping
        admin = context.get_admin_context()
        objects.HostMapping(admin, host=host, cell_mapping=cell).create()
        self.cloud.restart_host(host)

    def units(self, host):
        """Return the units in use, by child's letter and in their order."""
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
        """Return what a server has, by provider's name."""
        found = answers.allocation(self.api, server.id)["allocations"]
        providers = self.api.placement("GET", "/resource_providers")
        names = {p["uuid"]: p["name"] for p in providers["resource_providers"]}
        return {names[uuid]: entry["resources"] for uuid, entry in found.items()}

    def put(self, provider, what, **body):
        """Change a provider behind the back of everyone."""
        body["resource_provider_generation"] = provider.generation
        self.api.placement("PUT", f"/resource_providers/{provider.uuid}/{what}", body)

    def inflate_child(self, view):
        """Let the first child of a host have more units than it may."""
        inventories = {const.RC_UNIT: {"total": 5000, "max_unit": 5000}}
        self.put(view.children[0], "inventories", inventories=inventories)

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
        self.assertEqual((view.root,), view.tree)
        self.assertEqual((), view.isolated_by)
        self.assertEqual(frozenset(), view.root.aggregates)
