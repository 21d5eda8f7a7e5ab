# SPDX-License-Identifier: Apache-2.0
"""Checks of a host against the policy, Placement and Nova."""

import dataclasses

from tests.unit.measure import hosts
from tests.unit.measure.checks.host.case import (
    CONF,
    FAIL,
    FIRST,
    PASS,
    PID,
    POLICY,
    PROC,
    SKIP,
    WARN,
    HostCase,
    having,
    view,
    with_class,
)
from tests.unit.measure.hosts import UUIDS


class ClassRulesTest(HostCase):
    code = "class_rules"
    number = "number, class high-performance"
    beside = "nobody beside, class high-performance"

    def test_who_is_too_many(self):
        foreign = hosts.general_xml(3, "40-41")
        metadata = foreign[foreign.index("  <metadata>") : foreign.index("  <memory u")]
        for xml, subject, words in (
            (hosts.domain_xml(3), self.number, "3: "),
            (foreign, self.beside, "instance-00000003"),
            # Nova did not make it.
            (foreign.replace(metadata, ""), self.beside, "1: "),
        ):
            host = hosts.with_domains(hosts.host(), vm3=xml)
            self.assert_found(FAIL, subject, words, collected=host)

    def test_qemu_that_libvirt_does_not_run(self):
        host = having(
            hosts.host(),
            {"/proc/900/comm": "qemu-system-x86\n", "/proc/900/cmdline": "qemu\0"},
        )
        self.assert_found(FAIL, "process 900", collected=host)

    def test_exclusive_on_its_node(self):
        host = hosts.with_domains(
            hosts.host(vms=1), vm2=hosts.general_xml(2, "20-39,41")
        )
        policy = with_class(exclusive="cell")
        self.assert_found(PASS, self.beside, collected=host, policy=policy)
        host = hosts.with_domains(host, vm2=hosts.general_xml(2, "20-41"))
        self.assert_found(FAIL, self.beside, collected=host, policy=policy)

    def test_sizes(self):
        policy = with_class(vcpus=16)
        self.assert_found(FAIL, f"{FIRST}: size", "20", policy=policy)
        policy = with_class(vcpus=16, former_vcpus=(20,))
        self.assert_found(PASS, f"{FIRST}: size", "20", policy=policy)

    def test_classes_by_older_metadata(self):
        xml = hosts.domain_xml(1)
        specs = xml[xml.index("<nova:extraSpecs>") : xml.index("      </nova:flavor>")]
        old = xml.replace(specs, "").replace("hp.20c.128g", "{}")
        for flavor, policy, expected in (
            ("hp.20c.128g", POLICY, "2: "),
            # One pinned class has VMs of that size.
            ("whatever", POLICY, "2: "),
            ("whatever", with_class(vcpus=16), "1: "),
        ):
            host = hosts.with_domains(hosts.host(), vm1=old.format(flavor))
            found = {one.subject: one for one in self.findings(host, policy)}
            self.assertIn(expected, found[self.number].observed, flavor)

    def test_nova_knows_the_class(self):
        xml = hosts.domain_xml(1, specs={"perfvm:class": "general"})
        host = hosts.with_domains(hosts.host(), vm1=xml)
        self.assert_found(FAIL, self.beside, collected=host)
        self.assert_found(PASS, self.beside, collected=host, nova=view())


class ProviderYAMLTest(HostCase):
    code = "provider_yaml"

    def offered(self, text):
        return having(hosts.host(), {hosts.PROVIDER_PATH: text})

    def test_files(self):
        text = hosts.PROVIDER_YAML
        head, _, _ = text.partition("  inventories:")
        for changed, status in (
            (text, PASS),
            (text.replace("total: 2", "total: 3"), FAIL),
            (text.replace("total: 2", "total: 1"), WARN),
            (text.replace("HIGH_PERFORMANCE", "OTHER"), FAIL),
            (head, FAIL),
            ("", FAIL),
            ("- [", SKIP),
            ("providers: 3", SKIP),
        ):
            with self.subTest(changed=changed):
                found = {o.subject: o for o in self.findings(self.offered(changed))}
                one = found.get("files") or found[""]
                self.assertEqual(status, one.level, one)

    def test_no_file(self):
        path = "/etc/nova/provider_config"
        host = having(hosts.host(), {hosts.PROVIDER_PATH: None})
        for reason, subject, status in (
            ("no such file or directory", "files", FAIL),
            ("permission denied", "", SKIP),
            (None, "", SKIP),
        ):
            unread = {path: reason} if reason else {}
            found = dataclasses.replace(host, unread=unread)
            self.assertEqual(status, self.statuses(found)[subject])

    def test_shared_hosts_offer_nothing(self):
        conf = {CONF: "[compute]\ncpu_shared_set = 0-39\n"}
        host = having(hosts.host(vms=0), conf)
        self.assert_found(FAIL, "files", collected=host)
        unread = {"/etc/nova/provider_config": "no such file or directory"}
        host = having(host, {hosts.PROVIDER_PATH: None}, unread=unread)
        one = self.assert_found(PASS, "files", "nothing", collected=host)
        self.assertIn("without a file", one.source)

    def test_what_placement_has(self):
        trait = "CUSTOM_PERFVM_HIGH_PERFORMANCE"
        for options, status in (
            ({}, PASS),
            ({"traits": (trait, "CUSTOM_PERFVM_OLD")}, FAIL),
            ({"traits": ()}, FAIL),
            ({"slots": 3}, FAIL),
            ({"slots": 0}, FAIL),
            ({"traits": (trait, "CUSTOM_PERFVM_ELASTIC_2", "CUSTOM_OWN")}, PASS),
        ):
            with self.subTest(options=options):
                nova = view(hosts.snapshot(**options))
                self.assert_found(status, "Placement", nova=nova)
        one = self.assert_found(
            FAIL, "Placement", nova=view(hosts.snapshot(traits=(trait, f"{trait}_OLD")))
        )
        self.assertIn("outlived", one.remedy)


class ThreeWayTest(HostCase):
    code = "three_way"

    def other(self, **pins):
        (cell,) = hosts.server(1).cells
        moved = {**cell.cpu_pinning, **{int(k[1:]): v for k, v in pins.items()}}
        return dataclasses.replace(cell, cpu_pinning=moved)

    def test_nova_believes_otherwise(self):
        server = hosts.server(1, cells=(self.other(v3=25),))
        nova = view(hosts.snapshot(server, hosts.server(2)))
        word = "vCPU 3: Nova CPU 25, libvirt CPU 3"
        self.assert_found(FAIL, FIRST, word, nova=nova)

    def test_another_node(self):
        cell = dataclasses.replace(self.other(), host_node=1)
        nova = view(hosts.snapshot(hosts.server(1, cells=(cell,)), hosts.server(2)))
        self.assert_found(FAIL, FIRST, "Nova node 1, libvirt 0", nova=nova)

    def test_the_kernel_runs_it_elsewhere(self):
        path = f"{PROC}/task/{PID + 13}/status"
        for cpus, word in (("0-41", "several"), ("7", "CPU 7")):
            host = having(hosts.host(), {path: hosts.status("x", cpus, "0")})
            words = f"vCPU 3: libvirt CPU 3, the kernel {word}"
            self.assert_found(FAIL, FIRST, words, collected=host, nova=view())

    def test_vms_that_one_does_not_know(self):
        nova = view(hosts.snapshot(hosts.server(2)))
        self.assert_found(FAIL, FIRST, "Nova has none", nova=nova)
        self.assert_found(
            WARN, UUIDS[1], "libvirt runs none", collected=hosts.host(1), nova=view()
        )
        stopped = hosts.snapshot(hosts.server(1), hosts.server(2, status="SHUTOFF"))
        found = self.statuses(hosts.host(1), nova=view(stopped))
        self.assertEqual({FIRST: PASS}, found)

    def test_what_is_not_known(self):
        self.assert_all(SKIP)
        for changes in ({"cells": None}, {"task": "migrating"}):
            nova = view(hosts.snapshot(hosts.server(1, **changes), hosts.server(2)))
            self.assert_found(SKIP, FIRST, nova=nova)
        host = having(hosts.host(), {f"{PROC}/task/{PID + 13}/status": None})
        self.assert_found(SKIP, FIRST, "not asked", collected=host, nova=view())
        server = hosts.server(1, cells=(self.other(v3=25),))
        nova = view(hosts.snapshot(server, hosts.server(2)))
        self.assert_found(FAIL, FIRST, collected=host, nova=nova)
