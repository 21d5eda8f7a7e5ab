# SPDX-License-Identifier: Apache-2.0
"""NICs, disks, CPUs, connections and the rest, as the texts tell them."""

import testtools

from nova_perfvm.measure.collect.collected import CommandOutput, NotReadError
from nova_perfvm.measure.observed import (
    cpus,
    disks,
    flows,
    interrupts,
    nics,
    softnet,
    stat,
)
from nova_perfvm.measure.observed.nics import Kind, Queues
from tests.unit.measure import guests

NET = "/sys/class/net"


def read_nics(collected):
    return nics.read(collected, interrupts.read(collected))


class NICsTest(testtools.TestCase):
    def test_a_virtio_nic(self):
        (nic,) = read_nics(guests.guest(enabled=4))
        self.assertEqual(("eth0", "virtio_net", Kind.VIRTIO, "virtio0"), nic[:4])
        self.assertEqual(Queues(20, "ethtool -l eth0"), nic.present)
        self.assertEqual(Queues(4, "ethtool -l eth0"), nic.enabled)
        self.assertEqual(4, nic.used)

    def test_without_ethtool(self):
        guest = guests.guest(enabled=4)
        for output in (None, CommandOutput(95, "", "netlink error")):
            (nic,) = read_nics(
                guests.having(guest, commands={"ethtool -l eth0": output})
            )
            self.assertEqual(Queues(20, "/proc/interrupts"), nic.present)
            self.assertEqual(Queues(4, f"{NET}/eth0/queues"), nic.enabled)

    def test_kinds(self):
        for link, driver, kind in (
            ("pci0000:00/0000:00:05.0/net/eth1", "mlx5_core", Kind.PASSED_THROUGH),
            ("pci0000:00/0000:00:05.0/net/eth1", "iavf", Kind.PASSED_THROUGH),
            ("vdpa0/virtio3/net/eth1", "virtio_net", Kind.VDPA),
            ("pci0000:00/0000:00:05.0/net/eth1", "e1000", Kind.OTHER),
        ):
            device = link.removesuffix("/net/eth1")
            guest = guests.having(
                guests.guest(),
                links={
                    f"{NET}/eth1": f"../../devices/{link}",
                    f"{NET}/eth1/device": f"../../../{device}",
                    f"{NET}/eth1/device/driver": f"../../bus/drivers/{driver}",
                },
            )
            self.assertEqual(
                [Kind.VIRTIO, kind], [nic.kind for nic in read_nics(guest)]
            )

    def test_a_driver_that_only_ethtool_tells(self):
        told = "driver: ena\nbus-info: 0000:00:05.0\n"
        guest = guests.having(
            guests.guest(),
            files={f"{NET}/ens5/operstate": "up\n", f"{NET}/br0/operstate": "up\n"},
            commands={
                "ethtool -i ens5": CommandOutput(0, told),
                "ethtool -i br0": CommandOutput(0, "driver: bridge\nbus-info: \n"),
            },
        )
        self.assertEqual(
            [("ens5", "ena"), ("eth0", "virtio_net")],
            [(nic.name, nic.driver) for nic in read_nics(guest)],
        )


class CPUsTest(testtools.TestCase):
    def test_online(self):
        guest = guests.guest(vcpus=4)
        self.assertEqual(set(range(4)), cpus.online(guest))
        columns = guests.only(guest, "/proc/interrupts")
        self.assertEqual(set(range(4)), cpus.online(columns))
        self.assertRaises(NotReadError, cpus.online, guests.only(guest))

    def test_masks(self):
        for numbers in ([], [0], [31, 32, 63], [20, 95]):
            self.assertEqual(set(numbers), self.mask(guests.mask(numbers)))
        self.assertEqual({0, 32}, self.mask("1,00000001\n"))
        for text in ("", "0-3\n", "1,1\n"):
            self.assertRaises(NotReadError, self.mask, text)

    def mask(self, text):
        return cpus.mask(guests.having(guests.guest(), files={"mask": text}), "mask")


class DisksTest(testtools.TestCase):
    def test_drivers(self):
        block = "/sys/block"
        scsi = (
            "../devices/pci0/0000:00:05.0/virtio3/host2/target2:0:0/2:0:0:0/block/sda"
        )
        guest = guests.having(
            guests.guest(),
            files={
                f"{block}/loop0/queue/scheduler": "[none]",
                f"{block}/sda/queue/scheduler": "none [bfq]",
                f"{block}/sda/queue/nr_hw_queues": "4\n",
            },
            links={
                f"{block}/sda": scsi,
                f"{block}/sda/device/driver": "../../bus/scsi/drivers/sd",
                f"{block}/zram0": "../devices/virtual/block/zram0",
            },
        )
        self.assertEqual(
            [("sda", "virtio_scsi", 4, "bfq"), ("vda", "virtio_blk", 20, "none")],
            [tuple(disk) for disk in disks.read(guest)],
        )
        # A digit, and no number for int().
        guest = guests.having(guest, files={f"{block}/sda/queue/nr_hw_queues": "²\n"})
        self.assertEqual(0, disks.read(guest)[0].queues)


class FlowsTest(testtools.TestCase):
    def flows(self, first, later="", **files):
        guest = guests.having(
            guests.guest(),
            files={"/proc/net/tcp": guests.TCP + first, **files},
            later={"/proc/net/tcp": guests.TCP + later},
        )
        return flows.read(guest)

    def test_distinct_ones_at_either_look(self):
        two, five = guests.connections(2), guests.connections(5)
        self.assertEqual(5, self.flows(two, five))
        self.assertEqual(2, self.flows(two, two))

    def test_only_established_ones_to_others(self):
        listening = guests.connections(3, state="0A")
        # 127.0.0.1, and 10.0.0.127, which is none.
        for remote, expected in (("0100007F", 0), ("7F00000A", 3)):
            rows = listening + guests.connections(3, remote=remote)
            self.assertEqual(expected, self.flows(rows))

    def test_version_6(self):
        rows = "".join(
            f"   {i}: {'20010DB8' * 4}:0016 {remote}:{1000 + i} 01 0:0\n"
            for i, remote in enumerate(
                (
                    "20010DB8" * 4,
                    "0" * 24 + "01000000",
                    "0" * 16 + "FFFF00000100007F",
                    "0" * 16 + "FFFF00000100000A",
                )
            )
        )
        guest = guests.having(
            guests.only(guests.guest()),
            files={"/proc/net/tcp6": guests.TCP + rows},
        )
        self.assertEqual(2, flows.read(guest))
        self.assertRaises(NotReadError, flows.read, guests.only(guest))


class TimesTest(testtools.TestCase):
    def looks(self, path, first, later):
        return guests.having(
            guests.guest(), files={path: first}, later={path: later}
        )  # fmt: skip

    def test_steal(self):
        first, later = "cpu0 0 0 0 0 0 0 0 5 0 0\n", "cpu0 55 0 0 25 5 2 3 15 50 0\n"
        times = stat.read(self.looks(stat.PATH, first, later))
        # Time of guests is not counted twice.
        self.assertEqual(
            {0: stat.CPUTime(100, 10, 15, idle=30, interrupted=5, programs=5)}, times
        )
        self.assertEqual(0.1, times[0].share)

    def test_a_machine_that_began_anew(self):
        looks = self.looks(
            stat.PATH, "cpu0 9 0 0 9 0 0 0 5\n", "cpu0 90 0 0 90 0 0 0 0\n"
        )
        self.assertRaises(NotReadError, stat.read, looks)

    def test_kernels_and_texts_that_tell_nothing(self):
        for text in ("cpu0 1 2 3 4 5 6 7\n", "cpu0 1\n", "cpu0 a b c d\n"):
            self.assertRaises(
                NotReadError, stat.read, self.looks(stat.PATH, text, text)
            )

    def test_softnet(self):
        first = "00000010 00000000 ffffffff\n00000001 00000000 00000000\n"
        later = "00000020 00000002 00000001\n00000002 00000000 00000000\n"
        found = softnet.read(self.looks(softnet.PATH, first, later))
        self.assertEqual({0: (16, 2, 2), 1: (1, 0, 0)}, found)
