# SPDX-License-Identifier: Apache-2.0

import pathlib

import fixtures
import testtools

from nova_perfvm import textfile
from nova_perfvm.exceptions import UnreadableFileError


def _refuse(*_arguments):
    raise PermissionError(13, "Permission denied")


class ReadTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "file"

    def refused(self, path, *arguments):
        return self.assertRaises(UnreadableFileError, textfile.read, path, *arguments)

    def test_text_with_any_line_ends(self):
        self.path.write_bytes("ä\r\nb\rc\n\0".encode())
        self.assertEqual("ä\nb\nc\n\0", textfile.read(self.path))

    def test_refused_with_name_and_reason(self):
        self.path.write_bytes(b"ab\xff")
        for path, reason in (
            (self.path, "no UTF-8 text: invalid start byte at byte 2"),
            (self.path.parent, "Is a directory"),
            (self.path / "x", "Not a directory"),
            (self.path.parent / "x", "No such file or directory"),
            ("/dev/zero", "longer than 16 MiB: is it the right file?"),
            ("a\0b", "embedded null byte"),
        ):
            with self.subTest(reason):
                exc = self.refused(path)
                self.assertEqual((str(path), reason), (exc.path, exc.reason))
                shown = str(path).replace("\0", "\\u0000")
                self.assertEqual(f"cannot read {shown}: {reason}", str(exc))
                self.assertEqual(reason.startswith("No such"), exc.absent)

    def test_no_permission(self):
        # To root everything is permitted.
        self.useFixture(fixtures.MonkeyPatch("pathlib.Path.open", _refuse))
        self.assertEqual("Permission denied", self.refused(self.path).reason)

    def test_size(self):
        self.path.write_text("abc")
        self.assertEqual("abc", textfile.read(self.path, 3))
        self.assertIn("longer than 2", str(self.refused(self.path, 2)))
