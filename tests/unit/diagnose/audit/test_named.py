# SPDX-License-Identifier: Apache-2.0
"""Which file tells of which server, and what is said where none does."""

import dataclasses

import testtools

from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit import named as asking
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import Server
from nova_perfvm.measure.collect import hypervisor
from nova_perfvm.measure.collect.collected import CommandOutput
from nova_perfvm.measure.observed.domains import LIST, dumpxml
from tests.unit.measure import hosts
from tests.unit.measure.checks.host.case import (
    FAIL,
    PASS,
    PID,
    POLICY,
    PROC,
    SKIP,
    having,
)
from tests.unit.measure.hosts import UUIDS

ASKED_AT = "2026-11-22T10:05:00+00:00"
BEFORE, AFTER = "2026-11-22T09:00:00Z", "2026-11-22T10:03:00Z"


def question(*found, host=None):
    return asking.asked(found, ASKED_AT, host), host


def named(hostname, collected=None):
    return dataclasses.replace(collected or hosts.host(), hostname=hostname)


class ServersTest(testtools.TestCase):
    def check(self, asked, *collected):
        nova, host = asked
        seen = [
            hypervisor.facts(one, POLICY, f"{number}.json")
            for number, one in enumerate(collected)
        ]
        found = asking.check(nova, seen, host)
        return sorted(found, key=lambda one: one.level, reverse=True)

    def assert_found(self, expected, words, asked, *collected):
        """Look that one finding has a status, and the words."""
        (found,) = self.check(asked, *collected)
        self.assertEqual(expected, found.level, found)
        for word in words if isinstance(words, tuple) else (words,):
            self.assertIn(word, f"{found.observed} {found.remedy}")
        return found

    def test_agreement(self):
        for host in (hosts.host(), named("compute1.example.org")):
            found = self.check(question(hosts.server(1), hosts.server(2)), host)
            self.assertEqual([PASS, PASS], [one.level for one in found])
        self.assertEqual(
            ["rgw1 (" + UUIDS[0] + ")", "rgw2 (" + UUIDS[1] + ")"],
            [one.subject for one in found],
        )
        self.assertEqual({codes.PINS_DIFFER}, {one.code for one in found})
        self.assertIn(f"Nova's API at {ASKED_AT}", found[0].source)

    def test_only_what_is_asked_for(self):
        self.assert_found(PASS, "20 vCPUs", question(hosts.server(1)), hosts.host())
        asked = question(hosts.server(1), host="compute1")
        found = self.check(asked, hosts.host())
        self.assertEqual([FAIL, PASS], [one.level for one in found])
        self.assertIn("Nova has no server of that UUID here", found[0].observed)

    def test_disagreement(self):
        path = f"{PROC}/task/{PID + 13}/status"
        host = having(hosts.host(), {path: hosts.status("x", "7", "0")})
        words = "vCPU 3: libvirt CPU 3, the kernel CPU 7"
        server = hosts.server(1, updated=BEFORE)
        found = self.assert_found(FAIL, words, question(server), host)
        self.assertNotIn("collect there once more", str(found))
        # What was looked at before Nova changed the server is no evidence against it.
        server = hosts.server(1, updated=AFTER)
        words = (words, f"changed it at {AFTER}", "collect there once more")
        found = self.assert_found(SKIP, words, question(server), host)
        self.assertIn("/proc/", found.source)

    def test_pins_that_only_one_has(self):
        xml = hosts.domain_xml(1, pins=["0-19"] * 20)
        host = hosts.with_domains(hosts.host(), vm1=xml)
        words = ("vCPU 0: Nova CPU 0, libvirt none", "; and 36 more")
        self.assert_found(FAIL, words, question(hosts.server(1)), host)
        words = "vCPU 0: Nova none, libvirt CPU 0"
        asked = question(hosts.server(1, cells=()))
        self.assert_found(FAIL, words, asked, hosts.host())
        self.assert_found(FAIL, "neither Nova nor libvirt", asked, host)

    def test_without_a_file(self):
        asked = question(hosts.server(1))
        words = (
            "vCPUs 0-19 on CPUs 0-19 of NUMA node 0 (0:0 1:1 ",
            "libvirt and the kernel were not asked",
            "on compute1: nova-perfvm host collect --output compute1.json",
            "--collected compute1.json",
        )
        self.assert_found(SKIP, words, asked)
        asked = question(dataclasses.replace(hosts.server(1), host="a; reboot"))
        self.assert_found(SKIP, "--output 'a; reboot.json'; then", asked)
        busy = question(hosts.server(1, task="migrating"))
        self.assert_found(SKIP, "busy with it: migrating", busy)
        self.assert_found(SKIP, words, question(hosts.server(1), host="compute1"))

    def test_pins_that_nova_hides(self):
        """The flavor says that the server owns CPUs."""
        hidden = hosts.server(1, pinned=None, cells=None)
        for asked in (question(hidden), question(hidden, host="compute1")):
            self.assert_found(SKIP, "did not show the server's NUMA", asked)
            (found,) = self.check(asked, hosts.host(vms=0))
            self.assertEqual(codes.DOMAIN_MISSING, found.code)
        other = hosts.server(1, pinned=None, cells=None, extra_specs={})
        self.assert_found(SKIP, "owns no CPUs", question(other))
        asked = question(other, host="compute1")
        self.assert_found(SKIP, "no pinned server on this host", asked)

    def test_on_no_host_or_not_running(self):
        for changes, words in (
            ({"status": "SHELVED_OFFLOADED"}, "no host: SHELVED_OFFLOADED"),
            ({"status": "BUILD", "task": "scheduling"}, "busy with it: scheduling"),
            ({"status": "ERROR", "fault": "No valid host"}, "ERROR (No valid host)"),
        ):
            asked = question(hosts.server(1, host=None, cells=None, **changes))
            self.assert_found(SKIP, words, asked)
        stopped = question(hosts.server(1, status="SHUTOFF"))
        self.assert_found(SKIP, "does not run: SHUTOFF", stopped, hosts.host(vms=0))
        busy = question(hosts.server(1, task="powering-on"))
        self.assert_found(SKIP, "powering-on", busy, hosts.host())
        stub = Server(UUIDS[0], UUIDS[0], None, "UNKNOWN", 0, {})
        self.assert_found(SKIP, "cannot reach the server's cell", question(stub))
        self.assert_found(
            SKIP, "cannot reach the server's cell", question(stub), hosts.host()
        )

    def test_a_domain_that_was_not_read(self):
        commands = {**hosts.host().commands, dumpxml(UUIDS[0]): CommandOutput(1, "")}
        host = dataclasses.replace(hosts.host(), commands=commands)
        self.assert_found(SKIP, "exit code 1", question(hosts.server(1)), host)
        commands = {k: v for k, v in commands.items() if k != LIST}
        host = dataclasses.replace(hosts.host(), commands=commands)
        for asked in (
            question(hosts.server(1)),
            question(hosts.server(1), host="compute1"),
        ):
            found = self.check(asked, host)
            self.assertEqual({SKIP}, {one.level for one in found}, found)

    def test_a_file_of_another_host(self):
        for asked in (
            question(hosts.server(3)),
            question(hosts.server(3), host="compute1"),
        ):
            error = self.assertRaises(
                PerfVMError, self.check, asked, named("other", hosts.host())
            )
            self.assertIn("0.json was collected on other, and", str(error))
            self.assertIn("on compute1: collect there", str(error))
        error = self.assertRaises(
            PerfVMError, self.check, asked, hosts.host(), hosts.host()
        )
        self.assertIn("1.json: there is another file of compute1", str(error))
        twins = [
            hosts.server(n, host=f"compute1.{domain}", node=f"compute1.{domain}")
            for n, domain in ((1, "a"), (2, "b"))
        ]
        error = self.assertRaises(
            PerfVMError, self.check, question(*twins), hosts.host()
        )
        self.assertIn("compute1 can be each of compute1.a, compute1.b", str(error))

    def test_where_nova_does_not_have_it(self):
        there = {"host": "compute2", "node": "compute2"}
        moved = question(hosts.server(1, updated=BEFORE, **there))
        found = self.check(moved, hosts.host())
        self.assertEqual([FAIL, SKIP], [one.level for one in found])
        self.assertEqual(
            "libvirt ran it on compute1, and Nova has it on compute2",
            found[0].observed,
        )
        self.assertIn("virsh destroy instance-00000001", found[0].remedy)
        moved = question(hosts.server(1, updated=AFTER, **there))
        found = self.check(moved, hosts.host())
        self.assertEqual([SKIP, SKIP], [one.level for one in found])
        self.assertIn("it may have moved", found[0].observed)
        # On two hosts at once, one of which is right.
        there = hosts.server(1, updated=BEFORE)
        found = self.check(question(there), hosts.host(), named("other"))
        self.assertEqual([FAIL, PASS], [one.level for one in found])
        busy = question(hosts.server(1, task="migrating", host="compute2"))
        self.assert_found(SKIP, "migrating", busy, hosts.host())
