# SPDX-License-Identifier: Apache-2.0
"""Elastic hosts: what preflight says of them, and of what is to be one."""

import dataclasses

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import Selection
from nova_perfvm.diagnose.views import ElasticHosts
from nova_perfvm.facts.snapshot import Aggregate, Server, Snapshot, isolating
from nova_perfvm.findings import Level
from nova_perfvm.placement.contract import contract
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
RETRIES = {("placement", "allocation_conflict_retry_count"): "1"}
ENROLL = "openstack perfvm host enroll h1"
# Said of every cloud under units, and no fault.
ADVICE = {codes.NO_CPU_FOR_HOST, codes.RESTS_ON_FALLBACK}


class PreflightCase(PlanCase):
    def findings(self, *hosts, servers=(), stray=(), **facts):
        """Return the findings about hosts as if they had been seen so."""
        facts = {"nova_settings": GOOD, "placement_settings": RETRIES} | facts
        seen = Snapshot("2026-01-01T00:00:00+00:00", servers=tuple(servers))
        subject = audit.Subject(POLICY, seen, **facts)
        vars(subject)["elastic"] = ElasticHosts(hosts, stray)
        return [
            finding
            for result in audit.run_selection(Selection.PREFLIGHT, subject)
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
    def test_all_is_well(self):
        self.assertEqual({}, self.found(self.enrolled(view())))
        self.assertEqual({}, self.found())

    def test_files(self):
        host = self.enrolled(view())
        unknown = self.found(host, nova_settings=None, placement_settings=None)
        self.assertEqual(
            {
                codes.ISOLATION_UNKNOWN,
                codes.FALLBACK_UNKNOWN,
                codes.RETRY_COUNT_UNKNOWN,
            },
            set(unknown),
        )
        failed = self.found(host, nova_settings={}, placement_settings={})
        self.assertEqual({codes.ISOLATION, codes.RETRY_COUNT}, set(failed))
        retries = self.findings(host, placement_settings={})
        self.assertEqual([Level.FAILURE], [found.level for found in retries])
        settings = GOOD | {FALLBACK: "1"}
        (found,) = self.findings(host, nova_settings=settings)
        # To other schemes a warning, which a policy may accept.
        self.assertEqual(
            (codes.FALLBACK_QUERY, Level.FAILURE), (found.code, found.level)
        )
        dedicated = self.enrolled(view(resource="PCPU"))
        self.assertEqual({}, self.found(dedicated, nova_settings=settings))

    def test_what_nobody_looked_at(self):
        """Hosts behind a cell that is down, and one without a provider."""
        lost = Snapshot("", gaps=("cells: nothing of h2", "images: none"))
        alone = view(host="h2").cloud
        unknown = dataclasses.replace(alone, providers=())
        for seen, wanted, code, word in (
            (lost, (), codes.CELL_DOWN, "cells"),
            (unknown, ("h2",), codes.HOST_UNKNOWN, "h2"),
        ):
            subject = audit.Subject(
                LABELLED,
                seen,
                placement_settings=RETRIES,
                nova_settings=GOOD,
                wanted=frozenset(wanted),
            )
            results = audit.run_selection(Selection.PREFLIGHT, subject)
            found = {
                (one.code, one.subject)
                for result in results
                for one in result.findings
                if one.level is Level.WARNING
            }
            self.assertEqual({(code, word)}, found)

    def test_membership(self):
        good = self.enrolled(view())
        off = dataclasses.replace(good.compute, **OFF)
        for host in (
            having(good, aggregates=()),
            damaged(good, ROOT, traits=frozenset()),
            damaged(good, ROOT, aggregates=frozenset()),
            having(good, hosts=(off,)),
        ):
            self.assert_found(codes.HOST_NOT_ISOLATED, host, remedy=ENROLL)
        self.assert_found(codes.HOST_NOT_ISOLATED, stray=(("x", TRAIT),))

    def test_another_number_of_children(self):
        """Nothing is broken, but no VM of the policy comes."""
        good = self.enrolled(view())
        both = Aggregate(8, "u8", "x", isolating(FOUR_TRAIT), frozenset({"h1"}))
        for seen, words in (
            (self.enrolled(view(), policy=FOUR), "is enrolled for"),
            (self.enrolled(view(), policy=FOUR), FOUR_TRAIT),
            (
                having(good, aggregates=(*good.cloud.aggregates, both)),
                "aggregate x keeps off h1",
            ),
        ):
            with self.subTest(words):
                self.assert_found(codes.TRAIT_DIFFERS, seen, words=words, remedy=ENROLL)

    def test_children(self):
        good = self.enrolled(view())
        few = having(good, providers=good.cloud.providers[:2])
        odd = damaged(good, good.children[0].uuid, traits=frozenset())
        for host in (few, odd):
            self.assert_found(codes.CHILDREN_DIFFER, host, remedy=ENROLL)

    def test_residents(self):
        guest = server("a")
        wanted = view(guest)
        self.assert_found(codes.TO_BACKFILL, wanted, wanted=frozenset({"h1"}))
        forced = having(self.enrolled(view()), servers=(guest,))
        forced = damaged(forced, ROOT, allocations={"a": {"VCPU": 2}})
        self.assert_found(codes.UNITS_LACKING, forced, words="a (a) on h1 has no units")


class FlavorsTest(PreflightCase):
    GENERAL = contract(POLICY, POLICY.get_class("general")).extra_specs()
    HIGH = CLASS | contract(POLICY, POLICY.get_class("high-performance")).extra_specs()

    def test_those_that_ask_for_other_hosts(self):
        specs = {
            f"resources:{const.RC_UNIT}": "1000",
            f"trait:{FOUR_TRAIT}": "required",
        }
        left = server("a", 20, **specs)
        wide = self.enrolled(view(), policy=FOUR)
        compute = dataclasses.replace(wide.compute, host="h2")
        other = dataclasses.replace(wide, compute=compute)
        for hosts, words in (
            ((), "on h1: its flavor asks for CUSTOM_PERFVM_ELASTIC_4"),
            ((), "unshelves it to no host"),
            ((wide, other), "only to hosts that have it (others: 1)"),
        ):
            found = self.findings(*hosts, servers=(left,))
            (mine,) = (f for f in found if f.code == codes.FLAVOR_LEFT_BEHIND)
            self.assertIn(words, mine.observed)
            self.assertIn("openstack server resize --flavor ", mine.remedy)
        failed = dataclasses.replace(left, host=None, status="ERROR")
        self.assertEqual({}, self.found(servers=(failed,)))

    def test_those_that_bring_a_server_to_no_enrolled_host(self):
        half = {k: v for k, v in self.GENERAL.items() if "_perfvm_b" not in k}
        less = {k: "9" if v == "1000" else v for k, v in self.HIGH.items()}
        unnamed = {k: v for k, v in self.HIGH.items() if k != const.CLASS_KEY}
        nowhere = dataclasses.replace(server("a"), host=None)
        shelved = dataclasses.replace(nowhere, status="SHELVED_OFFLOADED")
        for guest, words in (
            (server("a"), "on h1: its flavor lacks 1 CUSTOM_PERFVM_UNIT"),
            (server("a"), f"{TRAIT} required"),
            (server("a", **half), "its flavor lacks"),
            (shelved, "on no host: its flavor lacks"),
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
            with self.subTest(words):
                found = self.found(servers=(guest,))
                self.assertIn(words or "", found.get(codes.FLAVOR_WITHOUT_UNITS, ""))
                self.assertEqual(words is None, not found)


class SchemeTest(PreflightCase):
    def test_a_policy_that_is_not_for_elastic_hosts(self):
        host = self.enrolled(view(high("a")), backfill=True)
        slots = dataclasses.replace(POLICY, placement="slots")
        subject = audit.Subject(slots, Snapshot("2026-01-01T00:00:00+00:00"))
        for hosts, expected in (((host,), ["h1"]), ((), [])):
            vars(subject)["elastic"] = ElasticHosts(hosts, ())
            results = audit.run_selection(Selection.PREFLIGHT, subject)
            found = [
                f.subject
                for result in results
                for f in result.findings
                if f.code == codes.NOT_UNITS
            ]
            self.assertEqual(expected, found)
