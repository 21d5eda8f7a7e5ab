# SPDX-License-Identifier: Apache-2.0
"""What libvirt's XML means."""

import dataclasses

import testtools

from nova_perfvm.measure.collect.collected import CommandOutput, NotReadError
from nova_perfvm.measure.observed import domains
from nova_perfvm.measure.observed.domains import Binding, Interface
from tests.unit.measure import hosts
from tests.unit.measure.hosts import UUIDS


class DomainTest(testtools.TestCase):
    def read(self, xml, exit_code=0):
        output = CommandOutput(exit_code, xml, "error: no such domain\n")
        command = domains.dumpxml(UUIDS[0])
        host = dataclasses.replace(hosts.host(), commands={command: output})
        return domains.read(host, UUIDS[0])

    def test_a_pinned_vm(self):
        found = self.read(hosts.domain_xml(1, pages_kb=2048))
        own = frozenset(range(20))
        self.assertEqual(
            (UUIDS[0], "instance-00000001", "kvm", True, 20, 128 * 2**20, None),
            (
                *(found.uuid, found.name, found.kind, found.running),
                *(found.vcpus, found.memory_kb, found.cpus),
            ),
        )
        self.assertEqual({cpu: cpu for cpu in range(20)}, found.pins)
        self.assertEqual((own, True), (found.pinned_cpus, found.all_pinned))
        self.assertEqual(
            (own, 1, {1: own}),
            (found.emulatorpin, found.iothreads, found.iothreadpins),
        )
        bound = Binding("strict", frozenset({0}))
        self.assertEqual((bound, {0: bound}), (found.memory, found.memnodes))
        self.assertEqual({0: own}, found.cells)
        self.assertEqual((2048,), found.page_sizes_kb)
        mac = "fa:16:3e:00:00:01"
        nic = Interface("bridge", "virtio", 20, "tap1", mac)
        self.assertEqual([nic], found.interfaces)

    def test_what_nova_notes(self):
        nova = self.read(hosts.domain_xml(1)).nova
        self.assertEqual(
            ("rgw1", "hp.20c.128g", hosts.HIGH, {}, None),
            dataclasses.astuple(nova),
        )
        root = '<nova:root type="image" uuid="i1"/><nova:image'
        booted = hosts.domain_xml(1).replace("<nova:image", root)
        self.assertEqual("i1", self.read(booted).nova.image)
        old = hosts.domain_xml(1).replace("nova/1.1", "nova/1.0")
        before, _, rest = old.partition("<nova:extraSpecs>")
        old = before + rest.partition("</nova:extraSpecs>")[2]
        nova = self.read(old.replace("<nova:properties/>", "")).nova
        self.assertEqual((None, None), (nova.extra_specs, nova.image_properties))

    def test_a_vm_that_shares(self):
        found = self.read(hosts.general_xml(1, "20-39,^25"))
        self.assertEqual(
            (False, {}, None, None, {}, 1),
            (
                *(found.all_pinned, found.pins, found.emulatorpin, found.memory),
                *(found.iothreadpins, found.interfaces[0].queues),
            ),
        )
        self.assertEqual(frozenset(range(20, 40)) - {25}, found.cpus)

    def test_units_and_hotplug(self):
        xml = hosts.domain_xml(1)
        memory = f"<memory unit='KiB'>{128 * 2**20}</memory>"
        for unit, number, kb in (
            ("unit='GiB'", 3, 3 * 2**20),
            ("unit='GB'", 1, 976562),
            ("unit='bytes'", 2048, 2),
            ("", 5, 5),
        ):
            text = xml.replace(memory, f"<memory {unit}>{number}</memory>")
            self.assertEqual(kb, self.read(text).memory_kb, unit)
        text = xml.replace("<vcpu placement=", "<vcpu current='8' placement=")
        self.assertEqual(8, self.read(text).vcpus)

    def test_what_cannot_be_understood(self):
        xml = hosts.domain_xml(1)
        for text in (
            "",
            xml[:-20],
            "<!doctype x>" + xml,
            "<!DOCTYPE x [<!ENTITY a 'aaa'>]>" + xml,
            xml.replace("cpuset='7'", "cpuset='7-3'"),
            xml.replace("<vcpu placement='static'>20", "<vcpu>many"),
            xml.replace("unit='KiB'>", "unit='acre'>"),
            "<domain/>",
            "<network/>",
            xml + " " * domains.MOST_CHARACTERS,
        ):
            error = self.assertRaises(NotReadError, self.read, text)
            self.assertEqual(domains.dumpxml(UUIDS[0]), error.place)
        error = self.assertRaises(NotReadError, self.read, "", 1)
        self.assertIn("no such domain", error.reason)
