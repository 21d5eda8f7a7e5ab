# SPDX-License-Identifier: Apache-2.0
"""All checks of a host: without a fault, and without anything."""

import dataclasses

import testtools

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.hypervisor import of_host
from nova_perfvm.measure.collect.collected import CommandOutput
from nova_perfvm.measure.observed.domains import LIST
from tests.unit.measure import hosts
from tests.unit.measure.checks.host.case import (
    CHECKS,
    FAIL,
    NOTE,
    PASS,
    POLICY,
    SKIP,
    XML,
    findings,
    view,
    with_class,
)
from tests.unit.measure.hosts import UUIDS


class AllTest(testtools.TestCase):
    def statuses(self, collected, nova=None, policy=POLICY):
        return {
            (code, one.level)
            for code in CHECKS
            for one in findings(code, collected, policy, nova)
        }

    def test_a_host_without_a_fault_passes_all(self):
        policy = with_class(mem_page_size="1GB")
        found = self.statuses(hosts.roomy(pages_kb=1048576), view(), policy)
        # As Nova writes it, no disk has an I/O thread.
        wanted = dict.fromkeys(CHECKS, PASS) | {
            "hypervisor.iothread_pin": NOTE,
            # The policy asks for none.
            "hypervisor.host_options": SKIP,
        }
        self.assertEqual({*wanted.items()}, found)

    def test_each_has_a_place_of_its_own(self):
        places = [check.order for check in CHECKS.values()]
        self.assertEqual(len(places), len(set(places)))

    def test_of_nothing_nothing_is_told(self):
        empty = dataclasses.replace(
            hosts.roomy(), files={}, later={}, links={}, commands={}
        )
        for policy in (None, POLICY):
            for nova in (None, view(hosts.snapshot(cells=False))):
                found = self.statuses(empty, nova, policy)
                self.assertEqual({(code, SKIP) for code in CHECKS}, found)

    def test_files_that_are_empty(self):
        host = hosts.roomy()
        empty = dataclasses.replace(
            host,
            files=dict.fromkeys(host.files, ""),
            later=dict.fromkeys(host.later, ""),
            commands=dict.fromkeys(host.commands, CommandOutput(0, "")),
        )
        found = self.statuses(empty)
        self.assertEqual(set(), {code for code, status in found if status is PASS})

    def test_a_host_without_libvirt(self):
        host = hosts.roomy()
        reason = "no such command: virsh"
        host = dataclasses.replace(host, commands={}, unread={LIST: reason})
        for code in ("vcpu_pins", "numatune", "threads_allowed", "class_rules"):
            (found,) = findings(f"hypervisor.{code}", host)
            self.assertEqual((SKIP, reason), (found.level, found.observed))

    def test_a_domain_that_was_not_read_is_named(self):
        host = hosts.roomy()
        commands = {**host.commands, XML: CommandOutput(1, "", "error: no domain")}
        host = dataclasses.replace(host, commands=commands)
        for code in ("vcpu_pins", "numatune", "memory_local", "class_rules", "smt"):
            found = findings(f"hypervisor.{code}", host)
            (skipped,) = [one for one in found if one.level is SKIP]
            self.assertEqual(f"virsh -r dumpxml {UUIDS[0]}", skipped.source, code)
            self.assertIn("error: no domain", skipped.observed)

    def test_stopped_vms_count_nowhere(self):
        host = hosts.roomy()
        stopped = hosts.domain_xml(3, pins=["0"] * 20).replace(" id='3'", "", 1)
        host = hosts.with_domains(host, vm3=stopped)
        self.assertNotIn(FAIL, {status for _, status in self.statuses(host, view())})


class OfHostTest(testtools.TestCase):
    def test_names(self):
        snapshot = hosts.snapshot()
        for name in ("compute1", "compute1.example.org", "compute1.local"):
            (host,) = of_host(snapshot, name).hosts
            self.assertEqual("compute1", host.host)
        error = self.assertRaises(PerfVMError, of_host, snapshot, "vm")
        self.assertIn("--host NAME, of compute1, compute2", str(error))
