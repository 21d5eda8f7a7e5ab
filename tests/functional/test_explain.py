# SPDX-License-Identifier: Apache-2.0
"""Explain beside what a real scheduler and a real Placement do, host by host."""

import json
import random

from nova_perfvm.cloud import candidates, nova_database
from nova_perfvm.cloud import snapshot as taking
from nova_perfvm.cloud.api import API
from nova_perfvm.diagnose import explain
from nova_perfvm.diagnose.explain import settings_for
from tests.functional import base, client, elastic


class AgreementMixin:
    """Create a server, and look whether explain knew what would become of it."""

    PATIENCE = 2

    OPTIONS = {}  # noqa: RUF012

    def explained(self, flavor, *, bfv):
        api = API(self.connection("admin", "admin,member,reader"))
        found = nova_database.with_cells(
            taking.take(api), nova_database.compute_nodes()
        )
        request, _ = explain.request_of(found, flavor=flavor, volume_backed=bfv)
        settings = settings_for(self.policy, self.OPTIONS)
        return explain.explain(
            self.policy,
            found,
            request,
            settings,
            offered=candidates.offered(api, request, settings, found.aggregates),
        )

    def create_as_explained(self, flavor):
        """Return the server, which is on a host that was said to take it."""
        self.cloud.run_periodics()
        found = self.explained(flavor, bfv=flavor.startswith("hp."))
        # Placement itself says what the arithmetic says.
        self.assertEqual([], [note for note in found.notes if "Placement" in note])
        server = self.cloud.boot(flavor)
        verdicts = {v.host: v for v in self.cloud.verdicts(server)}
        ours = {verdict.view.host.host: verdict for verdict in found.verdicts}
        reached = {
            host for host, v in ours.items() if not v.placement and not v.service
        }
        if found.request_reasons:
            self.assertEqual("ERROR", server.status)
        self.assertEqual(reached, set(verdicts), found.rows())
        for host, verdict in verdicts.items():
            codes = tuple(reason.code for reason in ours[host].rules)
            self.assertEqual(verdict.codes, codes, host)
        if found.accepting:
            self.assertEqual("ACTIVE", server.status, server.fault)
            self.assertIn(server.host, found.accepting)
        else:
            self.assertEqual("ERROR", server.status)
        return server

    def random_states(self, seed, steps, flavors):
        """Boot and delete at random; return how many were accepted and refused."""
        rng = random.Random(seed)
        running, counts = [], {"ACTIVE": 0, "ERROR": 0}
        for _ in range(steps):
            if running and rng.random() < 0.2:
                self.servers.delete(running.pop(rng.randrange(len(running))))
            server = self.create_as_explained(rng.choice(flavors))
            counts[server.status] += 1
            if server.status == "ACTIVE":
                running.append(server)
            else:
                self.servers.delete(server)
        return counts


class TestSlots(AgreementMixin, client.ClientMixin, base.FunctionalTest):
    PLACEMENT = "slots"
    OPTIONS = {("workarounds", "disable_fallback_pcpu_query"): "True"}  # noqa: RUF012

    def test_random_states(self):
        self.cloud.start_configured("hp1", self.policy, "dedicated")
        self.cloud.start_configured("hp2", self.policy, "dedicated", "2x22")
        self.cloud.start_configured("g1", self.policy, "shared")
        self.cloud.create_flavor("odd", 4, 4096, 0, base.PINNED)
        flavors = [base.HP_64, base.HP_64, base.GENERAL_2, "odd"]
        counts = self.random_states(3, 12, flavors)
        self.assertGreater(min(counts.values()), 1, counts)

    def test_the_command(self):
        self.cloud.start_configured("hp1", self.policy, "dedicated")
        hosts = [self.boot().host, self.boot().host]
        self.assertEqual(["hp1", "hp1"], hosts)
        status, stdout, _ = self.run_command("capacity", "show", "-f", "value")
        self.assertEqual((0, "hp1 high-performance 2 2 0 0\n"), (status, stdout))
        failed = self.boot_refused()

        status, stdout, stderr = self.run_command(
            "explain", "--server", failed.id, "-f", "json"
        )

        self.assertEqual(1, status, stderr)
        (row,) = json.loads(stdout)
        self.assertEqual(["hp1"], row["Hosts"])
        self.assertEqual("placement.resource, host.no_free_slot", row["Reason"])
        slot = next(r for r in row["Detail"] if "PERFVM_SLOT" in r["message"])
        self.assertEqual("CUSTOM_PERFVM_SLOT: need 1, 0 of 2 free", slot["message"])
        self.assertEqual(
            ("placement.resource", "hp1", 1, 0),
            tuple(slot[k] for k in ("code", "host", "expected", "observed")),
        )
        # A VM like those that are there: no other host would take one of them.
        self.assertIsNone(row["Fix"])
        words = "servers are in the way that no other host takes: hp1\n"
        self.assertIn(words, stderr)
        self.assertIn("No valid host was found", stderr)
        self.assertIn("assumed symmetric", stderr)
        status, stdout, _ = self.run_command(
            "explain", "--flavor", base.HP_64, "--long"
        )
        self.assertEqual(1, status)
        self.assertIn("NUMA node 0: 0 of 20 pCPUs free, need 20", stdout)
        self._bad_input()
        self.cloud.start_configured("g1", self.policy, "shared")
        status, stdout, _ = self.run_command(
            "explain", "--flavor", base.HP_64, "--host", "g1", "--long", "-f", "json"
        )
        (row,) = json.loads(stdout)
        said = [reason["message"] for reason in row["Placement"]]
        self.assertIn("PCPU: need 20, the host has none", said)
        vcpus = self.cloud.inventory("g1")["VCPU"]
        self.assertIn(f"Placement counts {vcpus} VCPU and no PCPU", row["NUMA Nodes"])

    def _bad_input(self):
        for words, *arguments in (
            ("there is no flavor 'x': see openstack flavor list", "--flavor", "x"),
            ("there is no server 'x'", "--server", "x"),
            ("no compute host 'x'", "--flavor", base.HP_64, "--host", "x"),
            ("cannot be read", "--flavor", "x", "--nova-conf", "/no/file"),
            ("there is no /no/file", "--flavor", "x", "--from-nova-db", "/no/file"),
            ("cannot read /no/file", "--flavor", "x", "--snapshot", "/no/file"),
            # Glance is not there beside this cloud.
            ("the images could not be listed", "--flavor", base.HP_64, "--image", "x"),
        ):
            status, stdout, stderr = self.run_command("explain", *arguments)
            self.assertEqual((3, ""), (status, stdout))
            self.assertIn(words, stderr.splitlines()[-1])
        identity = {"user": "member", "roles": "member,reader"}
        status, _, stderr = self.run_command("explain", "--flavor", "x", **identity)
        self.assertEqual(3, status)
        self.assertIn("needs the rights of an administrator", stderr)


class TestUnits(AgreementMixin, elastic.ElasticTest):
    OPTIONS = {("scheduler", "enable_isolated_aggregate_filtering"): "True"}  # noqa: RUF012

    def test_random_states(self):
        for name in ("e1", "e2"):
            self.cloud.start_configured(name, self.policy, "elastic")
            self.enroll(name)
        self.create_plain_flavors()
        flavors = [base.HP_64, base.HP_64, base.GENERAL_2, elastic.PLAIN_GENERAL]
        counts = self.random_states(5, 12, flavors)
        self.assertGreater(min(counts.values()), 1, counts)
