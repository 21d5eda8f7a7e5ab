# SPDX-License-Identifier: Apache-2.0
"""``explain --from-nova-db``: what Nova's scheduler, run dry, says of each host.

tests/drawn compares it with the scheduler at length; tests/sandbox runs the process
that a command starts.
"""

from pathlib import Path

import fixtures
from nova.conf import CONF
from testtools.matchers import StartsWith

from nova_perfvm.cloud.dry_run.scheduling import DryRun
from nova_perfvm.facts.dry_run import Question
from nova_perfvm.generate.flavors import generate_flavors
from tests.functional import base, client


class TestSlots(client.ClientMixin, base.FunctionalTest):
    PLACEMENT = "slots"

    def setUp(self):
        super().setUp()
        directory = Path(self.useFixture(fixtures.TempDir()).path)
        self.nova_conf = directory / "nova.conf"
        self.nova_conf.write_text("[DEFAULT]\n")
        # The databases of this cloud are in this process.
        configure = "nova_perfvm.cloud.nova_database.configure"
        self.useFixture(fixtures.MonkeyPatch(configure, lambda _: None))
        for host in ("hp1", "hp2"):
            self.cloud.start_configured(host, self.policy, "dedicated")
        self.cloud.start_configured("g1", self.policy, "shared")

    def explain(self, *arguments):
        """Return exit status, rows by their hosts, and what was said beside them."""
        status, rows, said = self.run_json(
            *("explain", "--from-nova-db", str(self.nova_conf), *arguments)
        )
        return status, {",".join(row["Hosts"]): row for row in rows}, said

    def test_each_part_that_refuses(self):
        server = self.boot()
        new = ("--flavor", base.HP_64, "--boot-from-volume")
        status, rows, _ = self.explain(*new)
        self.assertEqual((0, {"hp1,hp2", "g1"}), (status, set(rows)))
        self.assertIn("placement.trait_missing", rows["g1"]["Reason"])

        status, rows, _ = self.explain("--server", server.id)
        other = {"hp1": "hp2", "hp2": "hp1"}[server.host]
        self.assertEqual("nova.same_host", rows[server.host]["Reason"])
        self.assertEqual((0, ""), (status, rows[other]["Reason"]))

        # From a root disk of the host, which the class does not allow.
        (specs,) = (
            flavor.extra_specs
            for flavor in generate_flavors(self.policy)
            if flavor.name == base.HP_64
        )
        local = self.cloud.create_flavor("local", 20, 65536, 20, specs)
        status, rows, said = self.explain("--flavor", local)
        self.assertEqual(1, status, said)
        self.assertEqual("request.not_volume_backed", rows["hp1,hp2"]["Reason"])

        by_hand = {"hw:numa_nodes": "1", "hw:numa_cpus.0": "0,1"}
        by_hand |= {"hw:numa_mem.0": "2048"}
        odd = self.cloud.create_flavor("odd", 2, 2048, 0, by_hand)
        status, rows, said = self.explain("--flavor", odd)
        self.assertEqual((0, ""), (status, rows["g1"]["Reason"]), said)
        self.assertIn("judged by Nova alone", said)

        specs = {"hw:numa_nodes": "3"}
        bad = self.cloud.create_flavor("bad", 2, 2048, 0, specs)
        status, rows, said = self.explain("--flavor", bad)
        self.assertEqual((1, {}), (status, rows))
        self.assertIn("ImageNUMATopologyAsymmetric", said)

        status, _, said = self.explain(*new, "--count", "3")
        self.assertEqual(0, status, said)
        status, _, said = self.explain(*new, "--count", "4")
        self.assertEqual(1, status, said)
        self.assertIn("3 of 4 servers would be placed", said)

    def test_failed_and_ranked(self):
        for _ in range(4):
            self.boot()
        failed = self.boot_refused()
        status, rows, said = self.explain("--server", failed.id, "--long")
        self.assertEqual(1, status, said)
        self.assertIn("host.no_free_slot", rows["hp1"]["Reason"])
        self.assertIn("prefilter compute_status_filter: required=!COMPUTE_STATUS", said)
        self.assertIn("not reproduced: ports", said)
        status, stdout, said = self.run_command(
            *("explain", "--from-nova-db", str(self.nova_conf), "--ranking"),
            *("--flavor", base.GENERAL_2, "-f", "json"),
        )
        self.assertEqual(0, status, said)
        self.assertIn('"Host": "g1"', stdout)

    def test_a_request_that_ends_in_the_scheduler(self):
        """nova-scheduler finds the conflict when it makes the query for Placement."""
        disabled = {"os:secure_boot": "disabled"}
        flavor = self.cloud.create_flavor("disabled", 2, 2048, 0, disabled)
        image = self.cloud.create_image(os_secure_boot="required")
        question = Question(
            flavor=flavor, image=self.cloud._services.glance.show(None, image)
        )
        answer = DryRun().answer(question)
        self.assertThat(answer.refused, StartsWith("FlavorImageConflict: "))

    def test_a_filter_that_nova_asks_once(self):
        """A host that it refuses stays out for each server of the request."""
        filters = [*CONF.filter_scheduler.enabled_filters, "IsolatedHostsFilter"]
        CONF.set_override("enabled_filters", filters, "filter_scheduler")
        CONF.set_override("isolated_hosts", ["hp2"], "filter_scheduler")
        new = ("--flavor", base.HP_64, "--boot-from-volume")
        status, _, said = self.explain(*new, "--count", "3")
        self.assertEqual(1, status)
        self.assertIn("2 of 3 servers would be placed", said)

    def test_a_plan_that_nova_refuses(self):
        """No migration is begun that the scheduler would refuse."""
        self.boot(base.HP_64, host="hp1")
        # No copy of nova.conf is named, so the model does not know of this filter.
        filters = [*CONF.filter_scheduler.enabled_filters, "IsolatedHostsFilter"]
        CONF.set_override("enabled_filters", filters, "filter_scheduler")
        CONF.set_override("isolated_hosts", ["hp2"], "filter_scheduler")
        status, _, said = self.run_command(
            *("plan", "drain", "hp1", "--execute", "--yes"),
            *("--from-nova-db", str(self.nova_conf)),
        )
        self.assertEqual(1, status)
        self.assertIn("(IsolatedHostsFilter), which the plan did not foresee", said)
        self.assertEqual(
            [], self.cloud.api.api_get("/os-migrations").body["migrations"]
        )
