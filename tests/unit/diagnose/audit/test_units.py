# SPDX-License-Identifier: Apache-2.0
"""Elastic hosts: what preflight says of them, and of what is to be one."""

import dataclasses

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import Selection
from nova_perfvm.facts.snapshot import Aggregate, Server, Snapshot, isolating
from nova_perfvm.findings import Level
from nova_perfvm.placement.contract import contract
from nova_perfvm.placement.settings import NUMA_PACKING
from tests.unit.changes.elastic import (
    CLASS,
    FOUR,
    FOUR_TRAIT,
    LABELLED,
    POLICY,
    ROOT,
    TRAIT,
    damaged,
    having,
    high,
    server,
    view,
)
from tests.unit.changes.test_enroll import OFF, PlanCase

ISOLATED = ("scheduler", "enable_isolated_aggregate_filtering")
FALLBACK = ("workarounds", "disable_fallback_pcpu_query")
GOOD = {ISOLATED: "True", FALLBACK: "false"}
PACKING = codes.NUMA_PACKING
RETRIES = {("placement", "allocation_conflict_retry_count"): "1"}
ENROLL = "openstack perfvm host enroll h1"
# Said of every cloud under units, and no fault.
ADVICE = {codes.NO_CPU_FOR_HOST, codes.RESTS_ON_FALLBACK}


class PreflightCase(PlanCase):
    def findings(self, *hosts, servers=(), policy=POLICY, snapshot=None, **facts):
        """Return the findings about hosts as if they had been seen so."""
        told = {"nova_settings": GOOD, "placement_settings": RETRIES}
        facts = told | {"enforced": policy} | facts
        seen = Snapshot("2026-01-01T00:00:00+00:00", servers=tuple(servers))
        subject = audit.Subject(policy, snapshot or seen, **facts)
        if snapshot is None:
            vars(subject)["elastic"] = hosts
        return [
            finding
            for result in audit.run(subject, Selection.PREFLIGHT).results
            for finding in result.findings
            if finding.level is not Level.OK and finding.code not in ADVICE
        ]

    def found(self, *hosts, **facts):
        """Return {code: words}, each finding having been looked at."""
        found = self.findings(*hosts, **facts)
        for finding in found:
            self.assertIs(codes.LEVELS[finding.code], finding.level)
            self.assertTrue(finding.remedy)
        return {finding.code: finding.observed for finding in found}

    def assert_found(self, code, *hosts, words="", remedy="", **facts):
        found = self.found(*hosts, **facts)
        self.assertEqual({code}, set(found))
        self.assertIn(words, found[code])
        (finding, *_) = self.findings(*hosts, **facts)
        self.assertIn(remedy, finding.remedy)


class HostsTest(PreflightCase):
    def test_files(self):
        host = self.enrolled(view())
        self.assertEqual({}, self.found(host))
        self.assertEqual({}, self.found())
        unknown = {codes.ISOLATION_UNKNOWN, codes.FALLBACK_UNKNOWN}
        for settings, expected in (
            (None, unknown | {codes.RETRY_COUNT_UNKNOWN, codes.ENFORCED_UNKNOWN}),
            ({}, {codes.ISOLATION, codes.RETRY_COUNT}),
        ):
            facts = {"nova_settings": settings, "placement_settings": settings}
            self.assertEqual(expected, set(self.found(host, **facts)))
        settings = GOOD | {FALLBACK: "1"}
        (found,) = self.findings(host, nova_settings=settings)
        # To other schemes a warning, which a policy may accept.
        self.assertEqual((codes.FALLBACK_QUERY, Level.FAILURE), found[:2])
        dedicated = self.enrolled(view(resource="PCPU"))
        self.assertEqual({}, self.found(dedicated, nova_settings=settings))

    def test_numa_nodes_that_nova_compute_chooses(self):
        policy = dataclasses.replace(POLICY, placement="cells")
        for value, expected in ((None, set()), ("no", set()), ("1", {PACKING})):
            settings = GOOD | {FALLBACK: "True"}
            settings |= {NUMA_PACKING.key: value} if value else {}
            facts = {"policy": policy, "nova_settings": settings}
            self.assertEqual(expected, {*self.found(**facts)} & {PACKING})
        self.assertEqual({}, self.found(nova_settings=GOOD | {NUMA_PACKING.key: "1"}))

    def test_what_nobody_looked_at(self):
        """Hosts behind a cell that is down, and one without a provider."""
        lost = Snapshot("", gaps=("cells: nothing of h2", "images: none"))
        unknown = dataclasses.replace(view(host="h2").cloud, providers=())
        for seen, wanted, code, word in (
            (lost, (), codes.CELL_DOWN, "cells"),
            (unknown, ("h2",), codes.HOST_UNKNOWN, "h2"),
        ):
            facts = {"policy": LABELLED, "wanted": frozenset(wanted)}
            found = self.findings(snapshot=seen, **facts)
            worst = {f[:3] for f in found if f.level is not Level.NOTE}
            self.assertEqual({(code, Level.WARNING, word)}, worst)

    def test_hosts_that_are_not_as_enroll_makes_them(self):
        good = self.enrolled(view())
        off = dataclasses.replace(good.compute, **OFF)
        wide = self.enrolled(view(), policy=FOUR)
        both = Aggregate(8, "u8", "x", isolating(FOUR_TRAIT), frozenset({"h1"}))
        odd = damaged(good, good.children[0].uuid, traits=frozenset())
        for host, code, words in (
            (having(good, aggregates=()), codes.HOST_NOT_ISOLATED, ""),
            (damaged(good, ROOT, traits=frozenset()), codes.HOST_NOT_ISOLATED, ""),
            (damaged(good, ROOT, aggregates=frozenset()), codes.HOST_NOT_ISOLATED, ""),
            (having(good, hosts=(off,)), codes.HOST_NOT_ISOLATED, "was cut off"),
            # Nothing is broken, but no VM of the policy comes.
            (wide, codes.TRAIT_DIFFERS, f"enrolled for VMs that ask for {FOUR_TRAIT}"),
            (
                having(good, aggregates=(*good.cloud.aggregates, both)),
                codes.TRAIT_DIFFERS,
                f"ask for {TRAIT}, {FOUR_TRAIT}",
            ),
            (
                having(good, providers=good.cloud.providers[:2]),
                codes.CHILDREN_DIFFER,
                "1, should be 2",
            ),
            (odd, codes.CHILDREN_DIFFER, "inventories or traits"),
        ):
            self.assert_found(code, host, words=words, remedy=ENROLL)

    def test_residents(self):
        guest = server("a")
        wanted = view(guest)
        self.assert_found(codes.TO_BACKFILL, wanted, wanted=frozenset({"h1"}))
        forced = having(self.enrolled(view()), servers=(guest,))
        forced = damaged(forced, ROOT, allocations={"a": {"VCPU": 2}})
        self.assert_found(codes.UNITS_LACKING, forced, words="a (a) on h1 has no units")

    def test_a_policy_that_is_not_for_elastic_hosts(self):
        host = self.enrolled(view(high("a")), backfill=True)
        slots = dataclasses.replace(POLICY, placement="slots")
        found = self.found(host, policy=slots, nova_settings=GOOD)
        self.assertIn(codes.NOT_UNITS, found)
        self.assertNotIn(codes.NOT_UNITS, self.found(policy=slots))


class FlavorsTest(PreflightCase):
    GENERAL = contract(POLICY, POLICY.get_class("general"), 65536).extra_specs()
    HIGH = (
        CLASS
        | contract(POLICY, POLICY.get_class("high-performance"), 65536).extra_specs()
    )

    def test_those_that_ask_for_other_hosts(self):
        trait = {f"trait:{FOUR_TRAIT}": "required"}
        left = server("a", 20, **{f"resources:{const.RC_UNIT}": "1000"}, **trait)
        (found,) = self.findings(servers=(left,))
        self.assertEqual(codes.FLAVOR_LEFT_BEHIND, found.code)
        for words in (
            f"on h1: its flavor asks for {FOUR_TRAIT}",
            "to no host enrolled",
        ):
            self.assertIn(words, found.observed)
        self.assertIn("openstack server resize --flavor ", found.remedy)
        failed = dataclasses.replace(left, host=None, status="ERROR")
        self.assertEqual({}, self.found(servers=(failed,)))

    def test_those_that_bring_a_server_to_no_enrolled_host(self):
        half = {k: v for k, v in self.GENERAL.items() if "_perfvm_b" not in k}
        less = {k: "9" if v == "1000" else v for k, v in self.HIGH.items()}
        unnamed = {k: v for k, v in self.HIGH.items() if k != const.CLASS_KEY}
        nowhere = dataclasses.replace(server("a"), host=None)
        shelved = dataclasses.replace(nowhere, status="SHELVED_OFFLOADED")
        for guest, words in (
            (server("a"), "on h1: the flavor asks Placement for nothing"),
            (server("a"), f"{TRAIT} required"),
            (server("a", **half), "class asks for"),
            (shelved, "on no host: the flavor asks"),
            (
                server("a", 20, pinned=True, **unnamed),
                "on h1: its flavor pins CPUs and names no class of the policy",
            ),
            (
                server("a", 20, pinned=True, **less),
                "its class asks for 1000 CUSTOM_PERFVM_UNIT",
            ),
            (server("a", **self.GENERAL), None),
            (server("a", 20, pinned=True, **self.HIGH), None),
            # That they are not of their class is another finding.
            (server("a", 10, pinned=True, **self.HIGH), None),
            (server("a", 20, pinned=False, **self.HIGH), None),
            # Nova knows nothing of it while its cell is down.
            (Server("b", "b", None, "UNKNOWN", 0, {}), None),
            # One that came to no host has nothing that could be moved.
            (dataclasses.replace(nowhere, status="ERROR"), None),
        ):
            found = self.found(servers=(guest,))
            self.assertIn(words or "", found.get(codes.FLAVOR_WITHOUT_UNITS, ""))
            self.assertEqual(words is None, not found, words)
