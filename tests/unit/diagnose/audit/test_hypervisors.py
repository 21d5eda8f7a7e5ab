# SPDX-License-Identifier: Apache-2.0
"""The audit of a cloud on whose hosts was collected."""

import dataclasses

import testtools

from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import hypervisors, provider_files
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure.collect import hypervisor
from nova_perfvm.measure.collect.collected import CommandOutput
from nova_perfvm.measure.observed.domains import LIST, dumpxml
from tests.unit.measure import hosts
from tests.unit.measure.checks.host.case import PID, POLICY, PROC, changed, having
from tests.unit.measure.hosts import UUIDS

CONFIG = "/etc/nova/provider_config"
TRAIT = "CUSTOM_PERFVM_HIGH_PERFORMANCE"
BOTH = (hosts.server(1), hosts.server(2))


def subject(collected, *servers, **options):
    seen = hypervisor.facts(collected, POLICY, "compute1.json")
    snapshot = hosts.snapshot(*servers, **options)
    return audit.Subject(POLICY, snapshot, collected=(seen,))


class ServersTest(testtools.TestCase):
    def found(self, collected, *servers):
        return list(hypervisors.check(subject(collected, *servers)))

    def test_all_agree(self):
        self.assertEqual([], self.found(hosts.roomy(), *BOTH))

    def test_who_disagrees(self):
        (cell,) = hosts.server(1).cells
        elsewhere = dataclasses.replace(cell, cpu_pinning={**cell.cpu_pinning, 3: 25})
        other_node = dataclasses.replace(cell, host_node=1)
        path = f"{PROC}/task/{PID + 13}/status"
        anywhere, seventh = (
            {path: hosts.status("x", cpus, "0")} for cpus in ("0-41", "7")
        )
        pin = "vCPU 3: Nova CPU 25, libvirt CPU 3"
        runs = "vCPU 3: libvirt CPU 3, the kernel "

        def first(**changes):
            return hosts.server(1, **changes), hosts.server(2)

        name = str(hosts.server(1))
        for servers, code, subject, words, change in (
            (first(cells=(elsewhere,)), codes.PINS_DIFFER, name, pin, {}),
            (
                *(first(cells=(other_node,)), codes.PINS_DIFFER, name),
                *("Nova node 1, libvirt 0", {}),
            ),
            (BOTH, codes.PINS_DIFFER, name, f"{runs}several", anywhere),
            (BOTH, codes.PINS_DIFFER, name, f"{runs}CPU 7", seventh),
            # One of them does not know a VM.
            (
                *(BOTH[1:], codes.DOMAIN_LEFT_BEHIND, "instance-00000001"),
                *("Nova has no server", {}),
            ),
            (
                *(BOTH, codes.DOMAIN_MISSING, str(BOTH[1])),
                *("libvirt runs no domain", hosts.roomy(1)),
            ),
            # Of which Nova hides the pins.
            (
                *((BOTH[0], hosts.server(2, pinned=None, cells=None)),),
                *(codes.DOMAIN_MISSING, str(BOTH[1])),
                *("libvirt runs no domain", hosts.roomy(1)),
            ),
            # What is not known.
            (first(cells=None), codes.NOT_COMPARED, name, "NUMA topology", {}),
            (first(task="migrating"), codes.NOT_COMPARED, name, "migrating", {}),
            (BOTH, codes.NOT_COMPARED, name, "not asked", {path: None}),
            (first(cells=(elsewhere,)), codes.PINS_DIFFER, name, pin, {path: None}),
        ):
            (found,) = self.found(changed(change), *servers)
            self.assertEqual((code, subject), (found.code, found.subject), words)
            self.assertIn(words, found.observed)
            self.assertTrue(found.source)
            if code != codes.NOT_COMPARED:
                self.assertTrue(found.remedy and found.expected, found)
        for changes in (
            {"status": "SHUTOFF"},
            {"status": "SHUTOFF", "pinned": None, "cells": None},
            {"pinned": False, "cells": None},
            {"pinned": None, "cells": None, "extra_specs": {}},
        ):
            other = hosts.server(2, **changes)
            self.assertEqual([], self.found(hosts.roomy(1), BOTH[0], other), changes)

    def test_a_vm_that_was_left_behind(self):
        moved = hosts.server(2, host="compute2", updated="2026-11-22T09:00:00Z")
        (found,) = self.found(hosts.roomy(), BOTH[0], moved)
        self.assertEqual(codes.DOMAIN_LEFT_BEHIND, found.code)
        self.assertIn("ran it on compute1, and Nova has it on compute2", found.observed)
        later = dataclasses.replace(moved, updated="2026-11-22T10:00:30Z")
        (found,) = self.found(hosts.roomy(), BOTH[0], later)
        self.assertEqual(codes.NOT_COMPARED, found.code)
        for updated, code in (
            ("2026-11-22T10:00:30", codes.NOT_COMPARED),
            ("soon", codes.DOMAIN_LEFT_BEHIND),
        ):
            odd = dataclasses.replace(moved, updated=updated)
            (found,) = self.found(hosts.roomy(), BOTH[0], odd)
            self.assertEqual(code, found.code, updated)
        # While it moves it may be on both.
        busy = dataclasses.replace(moved, task="migrating")
        self.assertEqual([], self.found(hosts.roomy(), BOTH[0], busy))

    def test_what_was_not_read(self):
        commands = {**hosts.roomy().commands, dumpxml(UUIDS[0]): CommandOutput(1, "")}
        host = dataclasses.replace(hosts.roomy(), commands=commands)
        (found,) = self.found(host, *BOTH)
        self.assertEqual((codes.NOT_COMPARED, UUIDS[0]), (found.code, found.subject))
        unread = {LIST: "no such command: virsh"}
        (found,) = self.found(having(host, commands={}, unread=unread), *BOTH)
        self.assertEqual((codes.NOT_COMPARED, "compute1"), (found.code, found.subject))
        self.assertIn("install libvirt-clients", found.remedy)

    def test_it_is_no_check_where_nothing_was_collected(self):
        snapshot = hosts.snapshot(*BOTH)
        without, collected = (
            {result.title for result in audit.run(asked).results}
            for asked in (
                audit.Subject(POLICY, snapshot),
                subject(hosts.roomy(), *BOTH),
            )
        )
        self.assertEqual(
            {
                "Nova, libvirt and the kernel agree",
                "Placement has what hosts' files say",
            },
            collected - without,
        )
        self.assertEqual(set(), without - collected)

    def test_a_host_that_the_cloud_does_not_have(self):
        host = dataclasses.replace(hosts.roomy(), hostname="vm")
        error = self.assertRaises(PerfVMError, self.found, host)
        self.assertIn("compute1.json was collected on vm", str(error))
        self.assertIn("its hosts: compute1, compute2", str(error))


class ProviderFilesTest(testtools.TestCase):
    def found(self, collected, **options):
        return list(provider_files.check(subject(collected, **options)))

    def assert_found(self, code, words, collected, **options):
        (found,) = self.found(collected, **options)
        self.assertEqual((code, "compute1"), (found.code, found.subject))
        self.assertIn(words, found.observed)
        self.assertTrue(found.source)
        return found

    def test_files(self):
        text = hosts.PROVIDER_YAML
        head, _, _ = text.partition("  inventories:")
        self.assertEqual([], self.found(hosts.roomy()))
        differ, refused = codes.PROVIDER_FILES_DIFFER, codes.PROVIDER_FILES_REFUSED
        for changed_to, code, words in (
            (text.replace("total: 2", "total: 3"), differ, "SLOT 3"),
            (text.replace("total: 2", "total: 1"), differ, "SLOT 1"),
            (text.replace("HIGH_PERFORMANCE", "OTHER"), differ, "PERFVM_OTHER"),
            (head, differ, "say nothing"),
            ("", refused, "None is not of type 'object'"),
            ("- [", refused, "cannot be read: while parsing"),
            ("providers: 3", refused, "'meta' is a required property"),
            (text.replace("total: 2", "reserved: 0"), refused, "'total' is a required"),
        ):
            host = having(hosts.roomy(), {hosts.PROVIDER_PATH: changed_to})
            self.assert_found(code, words, host)

    def test_no_file(self):
        bare = having(hosts.roomy(), {hosts.PROVIDER_PATH: None})
        absent = having(bare, unread={CONFIG: "no such file or directory"})
        # The host playbook keeps the one that it takes away under such a name.
        empty = having(bare, {CONFIG: "perfvm.yaml~\n"})
        for host in (absent, empty):
            self.assert_found(codes.PROVIDER_FILES_DIFFER, "say nothing", host)
            self.assertEqual([], self.found(host, slots=0, traits=()))
        denied = having(bare, unread={CONFIG: "permission denied"})
        for host, words in ((denied, "denied"), (bare, "no provider config file")):
            self.assert_found(codes.NOT_COMPARED, words, host)

    def test_what_placement_has(self):
        for options, stale in (
            ({"traits": (TRAIT, "CUSTOM_PERFVM_OLD")}, "CUSTOM_PERFVM_OLD"),
            ({"traits": (TRAIT, f"{TRAIT}_OLD")}, f"{TRAIT}_OLD"),
            ({"traits": ()}, None),
            ({"slots": 3}, None),
            ({"slots": 0}, None),
        ):
            found = self.assert_found(
                codes.PROVIDER_FILES_DIFFER, "Placement has ", hosts.roomy(), **options
            )
            self.assertIn(stale or "restart nova-compute", found.remedy)
        others = (TRAIT, "CUSTOM_PERFVM_ELASTIC_2", "CUSTOM_OWN")
        self.assertEqual([], self.found(hosts.roomy(), traits=others))
        seen = subject(hosts.roomy())
        gone = dataclasses.replace(seen.snapshot, providers=())
        (found,) = provider_files.check(dataclasses.replace(seen, snapshot=gone))
        self.assertEqual(codes.NOT_COMPARED, found.code)
        # nova-compute that does not start makes no provider.
        wrong = having(hosts.roomy(), {hosts.PROVIDER_PATH: "meta: {}\n"})
        seen = dataclasses.replace(subject(wrong), snapshot=gone)
        (found,) = provider_files.check(seen)
        self.assertEqual(codes.PROVIDER_FILES_REFUSED, found.code)

    def test_a_provider_that_a_file_has_below_one_that_is_lost(self):
        seen = subject(hosts.roomy(), slots=3)
        (root,) = seen.snapshot.providers
        below = dataclasses.replace(root, parent="lost", root="lost")
        cut = dataclasses.replace(seen.snapshot, providers=(below,))
        (found,) = provider_files.check(dataclasses.replace(seen, snapshot=cut))
        self.assertIn("SLOT 3; the host's files say", found.observed)
