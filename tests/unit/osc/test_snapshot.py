# SPDX-License-Identifier: Apache-2.0
"""Files that commands write."""

import os
import pathlib

import fixtures
import testtools

from nova_perfvm.osc.snapshot import write_whole


class WriteWholeTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "file"
        self.addCleanup(os.umask, os.umask(0o022))

    def written(self, **options):
        """Write the file; return what it says and its permissions."""
        write_whole(str(self.path), "new", **options)
        self.assertEqual([self.path], [*self.path.parent.iterdir()])
        return self.path.read_text(), self.path.stat().st_mode & 0o777

    def test_private(self):
        self.assertEqual(("new", 0o600), self.written(private=True))
        for mode in (0o644, 0o666, 0o400):
            self.path.write_text("old")
            self.path.chmod(mode)
            self.assertEqual(("new", 0o600), self.written(private=True))
            self.path.chmod(0o600)

    def test_others_have_the_usual_permissions(self):
        self.assertEqual(("new", 0o644), self.written())
        # As monitoring reads it under another user.
        self.path.chmod(0o640)
        self.assertEqual(("new", 0o640), self.written())

    def test_what_is_no_file_stays(self):
        os.mkfifo(self.path)
        reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        write_whole(str(self.path), "new", private=True)
        self.assertEqual(b"new", os.read(reader, 10))
        self.assertTrue(self.path.is_fifo())
