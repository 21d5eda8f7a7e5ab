# SPDX-License-Identifier: Apache-2.0
"""What a directory is on, as a machine tells it."""

import asyncio

import testtools

from nova_perfvm.measure.bench import medium
from nova_perfvm.measure.bench.medium import Medium
from nova_perfvm.measure.bench.run import NothingToRunError
from nova_perfvm.measure.bench.scenario import Target
from nova_perfvm.measure.prove import loaded
from tests.directory import DirectoryCase

VOLUME = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
VM = Target("vm1", "guest")


class ReadTest(testtools.TestCase):
    def test_what_is_printed(self):
        for _name, text, expected in (
            (
                "local",
                "filesystem ext4\ndirect yes\ntransport nvme\ntransport pcie",
                {},
            ),
            ("refused", "filesystem ext4\nsource /dev/vda1", {"direct": False}),
            ("tmpfs", "filesystem tmpfs\ndirect yes", {"direct": False}),
            ("zfs", "filesystem zfs\ndirect yes", {"direct": False}),
            ("nfs", "filesystem nfs4\ndirect yes", {"network": True}),
            (
                "mapped RBD",
                "filesystem xfs\nsource /dev/rbd0p1\ndirect yes",
                {"network": True},
            ),
            ("iSCSI", "filesystem xfs\ndirect yes\ntransport iscsi", {"network": True}),
            (
                "NVMe over TCP",
                "filesystem xfs\ndirect yes\ntransport nvme\ntransport tcp",
                {"network": True},
            ),
            (
                "a volume on virtio-blk",
                f"filesystem ext4\ndirect yes\nserial {VOLUME[:20]}\ntransport virtio",
                {"volume": VOLUME[:20]},
            ),
            ("a disk", "filesystem ext4\ndirect yes\nserial S4EVNX0", {}),
        ):
            told = text.split()[1]
            found = Medium(told, **({"direct": True} | expected))
            self.assertEqual(found, medium.read(text))


class LookTest(DirectoryCase):
    def test_directories_here(self):
        there = self.directory / "not" / "yet"
        found = asyncio.run(medium.look(VM, str(there)))
        self.assertTrue(found.filesystem)
        self.assertEqual([], list(self.directory.iterdir()))
        shared = asyncio.run(medium.look(VM, "/dev/shm"))
        self.assertEqual(("tmpfs", False), (shared.filesystem, shared.direct))

    def test_what_is_refused(self):
        error = self.assertRaises(
            NothingToRunError, loaded.check_media, [VM], "/dev/shm"
        )
        self.assertIn("vm1: direct I/O is not direct there, on tmpfs", str(error))

    def test_volumes(self):
        async def on(_target, directory):
            return Medium("ext4", direct=True, volume=directory)

        self.patch(medium, "look", on)
        loaded.check_media([VM], "")
        loaded.check_media([VM], VOLUME[:20], {"vm1": [VOLUME]})
        for volume, volumes, words in (
            ("", {"vm1": [VOLUME]}, "no volume of Cinder"),
            (VOLUME[:20], {"vm1": []}, f"volume {VOLUME[:20]}, and the class"),
        ):
            error = self.assertRaises(
                NothingToRunError, loaded.check_media, [VM], volume, volumes
            )
            self.assertIn(words, str(error))
            self.assertIn("boot the server from such a volume", str(error))
