# SPDX-License-Identifier: Apache-2.0
"""Checks of what the policy declares: keys of classes, options of hosts.

tests/functional/test_nova_keys.py lets the first judge what a real Nova writes.
"""

import dataclasses
from typing import get_args

import testtools

from nova_perfvm.generate.host_options import OPTIONS
from nova_perfvm.measure.checks.host.declared_keys import differences
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.policy import Disk, policy_mistakes
from nova_perfvm.policy.guest import GuestTopology, MaxPhysAddr, Realtime
from nova_perfvm.policy.model import HostOption
from nova_perfvm.policy.written_keys import WRITTEN
from tests.unit.measure import hosts
from tests.unit.measure.checks.host.case import (
    CONF,
    FAIL,
    FIRST,
    NOTE,
    PASS,
    POLICY,
    SKIP,
    WARN,
    HostCase,
    having,
    with_class,
)

TOPOLOGY = "sockets='20' dies='1' cores='1'", "sockets='1' dies='1' cores='20'"
VCPU = "  <vcpu placement"
LOCKED = VCPU, f"  <memoryBacking><locked/></memoryBacking>{VCPU}"
PMU = "<apic/></features>", "<apic/><pmu state='off'/></features>"
FIFO = "<vcpusched vcpus='2-19' scheduler='fifo' priority='1'/>"
BITS = "<topology", "<maxphysaddr mode='emulate' bits='46'/><topology"
# (keys of the class, what the XML then needs, a word of the failure without it)
ROWS = (
    ({"guest_topology": GuestTopology("numa_nodes")}, TOPOLOGY, "sockets: 20"),
    ({"locked_memory": True, "mem_page_size": "small"}, LOCKED, "locked_memory: off"),
    ({"pmu": False}, PMU, "pmu: not there, declared off"),
    (
        {"realtime": Realtime("^0-1")},
        ("  </cputune>", f"{FIFO}  </cputune>"),
        "declared 2-19",
    ),
    ({"maxphysaddr": MaxPhysAddr("emulate", 46)}, BITS, "declared emulate 46"),
)


class DeclaredKeysTest(HostCase):
    def test_with_and_without(self):
        for keys, change, words in ROWS:
            policy = with_class(**keys)
            self.assert_cases(
                "declared_keys",
                (PASS, FIRST, "", change),
                (FAIL, FIRST, words, {}),
                policy=policy,
            )

    def test_threads_that_no_class_declares(self):
        policy = with_class(guest_topology=GuestTopology("numa_nodes"))
        halves = TOPOLOGY[0], "sockets='1' dies='1' cores='10'"
        xml = hosts.edited(hosts.roomy(), 1, halves)
        xml = hosts.edited(xml, 1, ("cores='10' threads='1'", "cores='10' threads='2'"))
        row = (FAIL, FIRST, "guest_topology.threads: 2, declared 1", xml)
        self.assert_cases("declared_keys", row, policy=policy)

    def test_devices(self):
        scsi, ring = Disk(source="volume", bus="scsi"), {"packed_ring": True}
        for keys, words in (
            ({"disk": scsi}, "declared scsi of virtio-scsi"),
            (ring, "packed_ring: off"),
        ):
            policy = with_class(**keys)
            self.assert_cases("declared_keys", (FAIL, FIRST, words, {}), policy=policy)
        bus = with_class(disk=Disk(source="volume", bus="virtio"))
        self.assert_cases("declared_keys", (PASS, FIRST, "", {}), policy=bus)

    def test_no_key_is_without_a_check(self):
        """Other checks see pins, NUMA nodes, pages and queues."""
        others = {"cpu_policy", "cpu_thread_policy", "emulator_threads", "numa_nodes"}
        others |= {"mem_page_size", "vif_multiqueue"}
        keys = {path.partition(".")[0] for path in WRITTEN.values()} - others
        policy = with_class(
            guest_topology=GuestTopology("numa_nodes", 1),
            locked_memory=True,
            mem_page_size="small",
            packed_ring=True,
            pmu=False,
            realtime=Realtime("^0-1"),
            maxphysaddr=MaxPhysAddr("emulate", 46),
            disk=Disk(source="volume", bus="scsi"),
        )
        domain = HostSubject(hosts.roomy(), policy).domains[0]
        found = dict(
            words.partition(":")[::2]
            for _, words in differences(policy.pinned_classes[0], domain)
        )
        self.assertEqual(keys | {"disk"}, {key.partition(".")[0] for key in found})

    def test_a_class_that_declares_nothing(self):
        self.assert_cases("declared_keys", (PASS, FIRST, "nothing is otherwise", {}))


class HostOptionsTest(HostCase):
    def test_options(self):
        policy = dataclasses.replace(POLICY, host_options=("rx_queue_size",))
        head = "[compute]\ncpu_dedicated_set = 1-20\n[libvirt]\n"
        for status, words, text in (
            (PASS, "is 1024", "rx_queue_size = 1024\n"),
            (NOTE, "is 512", "rx_queue_size = 512\n"),
            (WARN, "not set, which means 256", "num_pcie_ports = 8\n"),
            (
                NOTE,
                "multipathd",
                "rx_queue_size = 1024\nvolume_enforce_multipath = true\n",
            ),
        ):
            self.assert_cases(
                "host_options",
                (status, "host", words, {CONF: head + text}),
                policy=policy,
            )
        without = having(hosts.roomy(), {CONF: None})
        row = (SKIP, "host", "was not collected", without)
        self.assert_cases("host_options", row, policy=policy)

    def test_none_asked_for(self):
        self.assert_cases(
            "host_options", (PASS, "host", "asks for none", {CONF: "[compute]\n"})
        )


class TableTest(testtools.TestCase):
    def test_the_policy_takes_every_option(self):
        policy = dataclasses.replace(POLICY, host_options=tuple(OPTIONS))
        self.assertEqual([], policy_mistakes(policy))
        self.assertEqual(set(OPTIONS), set(get_args(HostOption)))
