# SPDX-License-Identifier: Apache-2.0
"""Server groups and zones: explain beside the real scheduler, and a plan."""

import collections
import itertools
import random
import uuid

from nova import context, objects
from nova.scheduler import utils
from testtools.content import text_content

from nova_perfvm import constants as const
from nova_perfvm.cloud import candidates
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.diagnose import explain
from nova_perfvm.diagnose.verdicts import settings_for
from tests import request_specs
from tests.functional import base
from tests.functional.client import ClientMixin
from tests.functional.scheduling import SchedulingMixin

POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
HOSTS = ("east1", "east2", "west1", "none1")
# Hosts in no aggregate are in that one.
ZONES = ("", "", "east", "west", "nova")


class GroupsCase(ClientMixin, base.FunctionalTest):
    """Hosts in two zones and in none, and a few servers on them."""

    FLAVORS = (base.GENERAL_2,)

    def setUp(self):
        super().setUp()
        for name in HOSTS:
            self.cloud.start_configured(name, self.policy, "shared")
        for zone in ("east", "west"):
            names = [name for name in HOSTS if name.startswith(zone)]
            self.cloud.aggregate_hosts({"availability_zone": zone}, *names)
        self.members = [
            self.boot(base.GENERAL_2, host=host).id for host in (*HOSTS, *HOSTS[:3])
        ]

    def add_group(self, policy, *members, most=None):
        """Make a group; put servers into it as nova-api does when it creates them."""
        body = {"name": str(uuid.uuid4()), "policy": policy}
        if most is not None:
            body["rules"] = {"max_server_per_host": most}
        group = self.cloud.api.post_server_groups(body)["id"]
        admin = context.get_admin_context()
        objects.InstanceGroup.add_members(admin, group, list(members))
        return group


class TestAgreement(SchedulingMixin, GroupsCase):
    """tests/long has more of them.

    :cvar VERDICTS: so many are compared, at least
    """

    VERDICTS = 80
    PATIENCE = 3

    def test_explain_agrees_with_the_scheduler(self):
        self.random = random.Random(8)
        self.counts, self.codes = collections.Counter(), collections.Counter()
        self.settings = settings_for(self.policy)
        for number in itertools.count():
            if self.counts.total() >= self.VERDICTS:
                break
            self.compare(number)
        told = f"{dict(self.counts)}, {dict(self.codes)}"
        self.addDetail("counted", text_content(told))
        for wanted in (
            const.NOVA_GROUP_AFFINITY,
            const.NOVA_GROUP_ANTI_AFFINITY,
            const.NOVA_AVAILABILITY_ZONE,
        ):
            self.assertGreater(self.codes[wanted], self.VERDICTS // 100, self.codes)
        self.assertGreater(self.counts[True], self.VERDICTS // 10)

    def compare(self, number):
        """Make groups, bind servers to zones, and ask for each of some requests."""
        free = self.random.sample(self.members, len(self.members))
        made = []
        for policy in self.random.sample(POLICIES, len(POLICIES)):
            most = None
            if policy == "anti-affinity":
                most = self.random.choice((None, 1, 1, 2))
            soft = policy.startswith("soft-")
            number_of = self.random.randint(0, 1 if soft else 3)
            chosen = [free.pop() for _ in range(number_of) if free]
            made.append((self.add_group(policy, *chosen, most=most), chosen))
        bound = {server: self.bind(server) for server in self.members}
        seen = read_snapshot(self.admin_api)
        self.assertTrue(seen.zones_told)
        for group, chosen in made:
            zone = self.random.choice(ZONES)
            self.ask(seen, number, group, zone)
            for server in chosen[:1]:
                self.ask(seen, number, group, bound[server], server)
        for group, _ in made:
            self.cloud.api.delete_server_group(group)

    def bind(self, server):
        zone = self.random.choice(ZONES)
        spec = objects.RequestSpec.get_by_instance_uuid(
            context.get_admin_context(), server
        )
        spec.availability_zone = zone or None
        spec.save()
        return zone

    def ask(self, seen, number, group, zone, server=None):
        """Ask both about each host."""
        what = {"flavor": base.GENERAL_2, "group": group, "availability_zone": zone}
        request, _ = explain.request_of(
            seen, **what if server is None else {"server": server}
        )
        offered = candidates.offered(
            self.admin_api, request, self.settings, seen.aggregates
        )
        found = explain.explain(
            self.policy, seen, request, self.settings, offered=offered
        )
        for verdict in found.verdicts:
            host = verdict.view.host
            taken = self.scheduled(group, zone, host, server)
            where = (number, str(request.group), zone, host, server, verdict.reasons)
            self.assertEqual(taken, verdict.accepted, where)
            self.counts[taken] += 1
            self.codes.update({reason.code for reason in verdict.reasons})

    def scheduled(self, group, zone, host, server):
        """Return whether nova-scheduler, asked as nova-conductor does, takes a host."""
        admin = self.admin()
        if server is None:
            image, asking = {"id": self.cloud.image}, str(uuid.uuid4())
            spec = request_specs.new_server(admin, asking, base.GENERAL_2, image, zone)
        else:
            spec = objects.RequestSpec.get_by_instance_uuid(admin, server)
            spec.requested_resources = []
            spec.request_level_params = objects.RequestLevelParams()
            # As nova-api and nova-conductor have it of a server that moves.
            spec.ignore_hosts = [objects.Instance.get_by_uuid(admin, server).host]
        spec.instance_group = objects.InstanceGroup.get_by_uuid(admin, group)
        utils.setup_instance_group(admin, spec)
        return self.takes(admin, spec, host)


class TestPlan(GroupsCase):
    def test_a_plan_keeps_servers_apart(self):
        east1, east2, *_, third = self.members
        group = self.add_group("anti-affinity", east1, east2, third)
        self.remember(group, east1, east2, third)
        drained = ("plan", "drain", "east1")
        status, rows, said = self.run_json(*drained)
        # Of the zone only the host is left that has one of the group.
        self.assertEqual(1, status, said)
        self.assertNotIn(east1, "".join(row["Server"] for row in rows))

        status, rows, said = self.run_json(*drained, "--any-zone", "--execute", "--yes")

        self.assertEqual(0, status, said)
        self.assertEqual({"done"}, {row["State"] for row in rows})
        hosts = {
            server: self.cloud.api.get_server(server)["OS-EXT-SRV-ATTR:host"]
            for server in (east1, east2, third)
        }
        self.assertEqual(3, len(set(hosts.values())), hosts)
        self.assertNotIn("east1", hosts.values())
        status, _, said = self.run_json(
            *("explain", "--flavor", base.GENERAL_2, "--server-group", group),
            *("--host", hosts[east1]),
        )
        self.assertEqual(1, status, said)
        self._without_rights()

    def remember(self, group, *servers):
        """Let requests for servers name their group, as from their creation on."""
        admin = context.get_admin_context()
        for server in servers:
            spec = objects.RequestSpec.get_by_instance_uuid(admin, server)
            spec.instance_group = objects.InstanceGroup.get_by_uuid(admin, group)
            spec.save()

    def _without_rights(self):
        """Look what is said where the groups of other projects are not shown."""
        rule = "os_compute_api:os-server-groups:index:all_projects"
        self.cloud._services.policy.set_rules({rule: "!"}, overwrite=False)
        _, _, said = self.run_json("plan", "drain", "east1")
        self.assertIn("not seen: server groups: Nova: GET /os-server-groups?", said)
        self.assertIn("there are no server groups in this snapshot", said)
