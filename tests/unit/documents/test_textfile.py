# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import subprocess
import sys

import fixtures
import testtools

from nova_perfvm.documents import textfile
from nova_perfvm.documents.mistakes import UnreadableFileError
from nova_perfvm.exceptions import PerfVMError


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
            (
                self.path,
                "not UTF-8 text: invalid start byte at byte 2: is it the right file?",
            ),
            (self.path.parent, "Is a directory"),
            (self.path / "x", "Not a directory"),
            (self.path.parent / "x", "No such file or directory"),
            ("/dev/zero", "longer than 16 MiB: is it the right file?"),
            ("a\0b", "embedded null byte"),
            ("", "an empty path: name a file"),
        ):
            exc = self.refused(path)
            self.assertEqual((str(path) or "''", reason), (exc.path, exc.reason))
            shown = exc.path.replace("\0", "\\u0000")
            self.assertEqual(f"cannot read {shown}: {reason}", str(exc))

    def test_size(self):
        self.path.write_text("abc")
        self.assertEqual("abc", textfile.read(self.path, 3))
        self.assertIn("longer than 2", str(self.refused(self.path, 2)))


class ReplaceTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "file"
        self.addCleanup(os.umask, os.umask(0o022))

    def test_permissions(self):
        for private, before, after in (
            (False, None, 0o644),
            # As monitoring reads it under another user.
            (False, 0o640, 0o640),
            (True, None, 0o600),
            (True, 0o666, 0o600),
        ):
            self.path.unlink(missing_ok=True)
            if before is not None:
                self.path.write_text("old")
                self.path.chmod(before)
            textfile.replace(str(self.path), "new", private=private)
            self.assertEqual([self.path], [*self.path.parent.iterdir()])
            self.assertEqual("new", self.path.read_text())
            self.assertEqual(after, self.path.stat().st_mode & 0o777)

    def test_what_is_no_file_stays(self):
        os.mkfifo(self.path)
        reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        textfile.replace(str(self.path), "new", private=True)
        self.assertEqual(b"new", os.read(reader, 10))
        self.assertTrue(self.path.is_fifo())

    def test_the_file_behind_a_link_is_replaced(self):
        real = self.path.with_name("real")
        self.path.symlink_to(real.name)
        for before in (None, "old"):
            if before is not None:
                real.write_text(before)
            textfile.replace(str(self.path), "new")
            self.assertTrue(self.path.is_symlink())
            self.assertEqual("new", real.read_text())
            self.assertEqual({self.path, real}, {*self.path.parent.iterdir()})

    def test_standard_output_is_written_to(self):
        """Also where it is a file: /dev/stdout is such a link."""
        out = self.path.with_name("out")
        code = "import sys; from nova_perfvm.documents import textfile as t; "
        code += "t.replace(sys.argv[1], 'new')"
        for number in (1, 2):
            link = self.path.with_name(f"link{number}")
            link.symlink_to(f"/proc/self/fd/{number}")
            out.write_text("logged before, ")
            inode = out.stat().st_ino
            with out.open("a") as file:
                streams = {"stdout" if number == 1 else "stderr": file}
                command = [sys.executable, "-c", code, str(link)]
                subprocess.run(command, check=True, **streams)
            self.assertTrue(link.is_symlink())
            self.assertEqual("logged before, new", out.read_text())
            self.assertEqual(inode, out.stat().st_ino)

    def test_reason_is_without_the_scratch_file(self):
        path = str(self.path.parent / "none" / "file")
        refusal = self.assertRaises(PerfVMError, textfile.replace, path, "new")
        expected = f"cannot write {path}: No such file or directory"
        self.assertEqual(expected, str(refusal))


class ExclusivelyTest(testtools.TestCase):
    def refused(self, path):
        with textfile.exclusively(path):
            pass

    def test_one_at_a_time(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        path = str(directory / "file")
        with textfile.exclusively(path):
            error = self.assertRaises(PerfVMError, self.refused, path)
            self.assertIn("another process is working on", str(error))
            textfile.replace(path, "x")
        with textfile.exclusively(path):
            pass
        self.assertEqual([directory / "file"], list(directory.iterdir()))

    def test_a_planted_link_is_not_followed(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        lock = directory / ".file.lock"
        for target in (directory / "precious", directory / "absent"):
            (directory / "precious").write_text("all that there is")
            lock.symlink_to(target)
            error = self.assertRaises(
                PerfVMError, self.refused, str(directory / "file")
            )
            words = f"cannot write {lock}: a symbolic link, which is not followed"
            self.assertIn(words, str(error))
            left = {path.name for path in directory.iterdir()}
            self.assertEqual({".file.lock", "precious"}, left)
            text = (directory / "precious").read_text()
            self.assertEqual("all that there is", text)
            lock.unlink()

    def test_a_linked_file_is_not_emptied(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (directory / "precious").write_text("all that there is")
        os.link(directory / "precious", directory / ".file.lock")
        with textfile.exclusively(str(directory / "file")):
            pass
        text = (directory / "precious").read_text()
        self.assertEqual("all that there is", text)

    def test_where_it_cannot_be(self):
        path = self.useFixture(fixtures.TempDir()).join("no", "file")
        error = self.assertRaises(PerfVMError, self.refused, path)
        self.assertIn("No such file or directory", str(error))
