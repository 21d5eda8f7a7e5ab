# SPDX-License-Identifier: Apache-2.0

import io
import json

import fixtures

from nova_perfvm.documents.mistakes import DocumentError, UnreadableFileError
from nova_perfvm.measure.collect import reading
from nova_perfvm.measure.collect.collected import NotReadError
from tests.directory import DirectoryCase
from tests.unit.measure import collected_file


class ReadingCase(DirectoryCase):
    def setUp(self):
        super().setUp()
        self.path = self.directory / "collected"

    def read(self, data, kind=None):
        if isinstance(data, dict):
            data = json.dumps(data)
        self.path.write_bytes(data.encode() if isinstance(data, str) else data)
        return reading.read(str(self.path), kind)

    def assert_refused(self, error, words, data, kind=None):
        """Assert one message that names the file."""
        said = str(self.assertRaises(error, self.read, data, kind))
        self.assertIn(str(self.path), said)
        for word in words if isinstance(words, tuple) else (words,):
            self.assertIn(word, said)
        return said


class JSONTest(ReadingCase):
    def test_what_was_written(self):
        found = self.read(collected_file.document(), "guest")
        self.assertEqual(("guest", "vm1"), (found.kind, found.hostname))
        self.assertEqual(5.001, found.interval_s)
        self.assertEqual(("cpu 1\n", "cpu 2\n"), found.looks("/proc/stat"))
        self.assertEqual("Combined:\t20\n", found.output("ethtool -l eth0"))
        error = self.assertRaises(NotReadError, found.text, "/proc/7/numa_maps")
        self.assertEqual("permission denied", error.reason)

    def test_standard_input(self):
        stdin = io.TextIOWrapper(
            io.BytesIO(json.dumps(collected_file.document()).encode())
        )
        with fixtures.MonkeyPatch("sys.stdin", stdin):
            self.assertEqual("vm1", reading.read("-").hostname)

    def test_all_mistakes_at_once(self):
        document = collected_file.document(
            kind="server",
            taken_at="yesterday",
            interval_s=-1,
            files={"proc/stat": 1},
            links=[],
            commands={"a": 1, "b": {"exit_code": "0", "stdout": None, "stderr": ""}},
            surplus=1,
        )
        del document["hostname"], document["later"]
        said = self.assert_refused(DocumentError, "12 mistakes", document)
        for line in (
            "later: missing",
            "kind: found 'server', expected one of 'host', 'guest'",
            "hostname: missing",
            "taken_at: found 'yesterday', expected a time",
            "interval_s: found -1, expected a number of seconds",
            "files.proc/stat: found 'proc/stat', expected an absolute path",
            "files.proc/stat: found 1, expected text",
            "links: found [], expected a mapping",
            "commands.a: found 1, expected a mapping with the keys exit_code, stdout",
            "commands.b.exit_code: found '0', expected a whole number",
            "commands.b.stdout: found null, expected text",
            "surplus: unknown key",
        ):
            self.assertIn(line, said)

    def test_numbers_that_python_does_not_read(self):
        digits = 5000 * "9"
        for place, changed in (
            ("files./proc/stat", {"files": {"/proc/stat": f"cpu0 {digits}\n"}}),
            ("later./proc/stat", {"later": {"/proc/stat": digits}}),
            (
                "commands.a.stdout",
                {"commands": {"a": {"exit_code": 0, "stdout": digits, "stderr": ""}}},
            ),
        ):
            document = collected_file.document(**changed)
            said = self.assert_refused(DocumentError, "1 mistake", document)
            self.assertIn(f"{place}: found", said)
            self.assertIn("expected text without numbers of 1000 digits", said)

    def test_what_is_no_number_of_seconds(self):
        for text in ("1e999", "-0.5", "true", '"5"', "1" + "0" * 400):
            data = json.dumps(collected_file.document()).replace("5.001", text)
            if text != "1" + "0" * 400:
                self.assert_refused(DocumentError, "a number of seconds", data)
        self.assert_refused(DocumentError, "not JSON", data.replace(text, "NaN"))

    def test_what_is_no_json(self):
        for text in ("", "{", "cpu 1"):
            self.assert_refused(DocumentError, "not JSON", text)
        self.assert_refused(DocumentError, "nested too deeply", "[" * 100_000)
        words = ("not UTF-8", "a guest (nova-perfvm guest collect), in plain JSON?")
        self.assert_refused(UnreadableFileError, words, b"\x1f\x8b", "guest")

    def test_another_version_or_kind(self):
        for document in ({}, [], {"schema_version": "9"}, {"schema_version": [1]}):
            self.assert_refused(DocumentError, "schema_version", json.dumps(document))
        said = "this is a collected file of a guest"
        words = (said, "expected a collected file of a host")
        self.assert_refused(DocumentError, words, collected_file.document(), "host")

    def test_files_that_cannot_be_read(self):
        for path, reason in (
            ("/none", "No such file"),
            ("/", "Is a directory"),
            ("a\0b", "null byte"),
        ):
            error = self.assertRaises(UnreadableFileError, reading.read, path)
            self.assertIn(reason, str(error))

    def test_a_million_mistakes_are_a_few(self):
        document = collected_file.document(
            files=dict.fromkeys(map(str, range(10_000)), 1)
        )
        error = self.assertRaises(DocumentError, self.read, document)
        self.assertEqual(101, str(error).count("\n"))
