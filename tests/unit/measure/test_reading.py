# SPDX-License-Identifier: Apache-2.0

import io
import json
import tarfile

import fixtures

from nova_perfvm.documents.mistakes import DocumentError, UnreadableFileError
from nova_perfvm.measure import collector, reading
from nova_perfvm.measure.collected import Collected, NotReadError
from tests.directory import DirectoryCase
from tests.unit.measure import reports


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
        found = self.read(reports.document(), "guest")
        self.assertEqual(("guest", "vm1"), (found.kind, found.hostname))
        self.assertEqual(5.001, found.interval_s)
        self.assertEqual(("cpu 1\n", "cpu 2\n"), found.looks("/proc/stat"))
        self.assertEqual("Combined:\t20\n", found.output("ethtool -l eth0"))
        error = self.assertRaises(NotReadError, found.text, "/proc/7/numa_maps")
        self.assertEqual("permission denied", error.reason)

    def test_standard_input(self):
        stdin = io.TextIOWrapper(io.BytesIO(json.dumps(reports.document()).encode()))
        with fixtures.MonkeyPatch("sys.stdin", stdin):
            self.assertEqual("vm1", reading.read("-").hostname)

    def test_all_mistakes_at_once(self):
        document = reports.document(
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

    def test_what_is_no_number_of_seconds(self):
        for text in ("1e999", "-0.5", "true", '"5"', "1" + "0" * 400):
            data = json.dumps(reports.document()).replace("5.001", text)
            if text != "1" + "0" * 400:
                self.assert_refused(DocumentError, "a number of seconds", data)
        self.assert_refused(DocumentError, "no JSON", data.replace(text, "NaN"))

    def test_what_is_no_json(self):
        for text in ("", "{", "cpu 1"):
            self.assert_refused(DocumentError, "no JSON", text)
        self.assert_refused(DocumentError, "nested too deeply", "[" * 100_000)
        self.assert_refused(UnreadableFileError, "no UTF-8", b"{\xff")

    def test_another_version_or_kind(self):
        for document in ({}, [], {"schema_version": "9"}, {"schema_version": [1]}):
            self.assert_refused(DocumentError, "schema_version", json.dumps(document))
        said = "this is a collected file of a guest"
        words = (said, "expected a collected file of a host")
        self.assert_refused(DocumentError, words, reports.document(), "host")

    def test_files_that_cannot_be_read(self):
        for path, reason in (
            ("/none", "No such file"),
            ("/", "Is a directory"),
            ("a\0b", "null byte"),
        ):
            error = self.assertRaises(UnreadableFileError, reading.read, path)
            self.assertIn(reason, str(error))

    def test_a_million_mistakes_are_a_few(self):
        document = reports.document(files=dict.fromkeys(map(str, range(10_000)), 1))
        error = self.assertRaises(DocumentError, self.read, document)
        self.assertLess(str(error).count("\n"), 30)


class SosReportTest(ReadingCase):
    def setUp(self):
        super().setUp()
        files = reports.SOSREPORT | {
            "sos_reports/manifest.json": reports.manifest(reports.EXIT_CODES)
        }
        self.members = reports.sosreport(files)
        self.found = self.read(reports.packed(self.members, "w:xz"))

    def test_the_machine(self):
        self.assertEqual(("host", "compute1"), (self.found.kind, self.found.hostname))
        self.assertTrue(self.found.taken_at.startswith("2026-11-18T"))
        self.assertEqual(0, self.found.interval_s)
        guest = self.read(reports.packed(self.members), "guest")
        self.assertEqual("guest", guest.kind)
        self.assertNotIn("virsh -r capabilities", guest.commands | guest.unread)

    def test_however_it_is_packed(self):
        for mode in ("w:gz", "w:xz", "w:bz2", "w"):
            again = self.read(reports.packed(self.members, mode))
            self.assertEqual(self.found, again, mode)

    def test_files_behind_links(self):
        nic = "/sys/class/net/eth0"
        self.assertEqual("1500\n", self.found.text(f"{nic}/mtu"))
        self.assertEqual("12\n", self.found.text(f"{nic}/statistics/rx_packets"))
        self.assertEqual("1\n", self.found.text(f"{nic}/device/numa_node"))
        self.assertEqual(reports.LINKS["sys/class/net/eth0"], self.found.link(nic))
        self.assertEqual(
            "../../../bus/pci/drivers/mlx5_core",
            self.found.link(f"{nic}/device/driver"),
        )

    def test_what_was_not_read_says_why(self):
        absent = "the sosreport does not have it"
        for place, reason in (
            ("/sys/block/sda/queue/scheduler", "its link leads out of the sosreport"),
            ("/sys/block/vda/queue/scheduler", "too many links lead to it"),
            ("/proc/7/task", absent),
            ("/proc/softirqs", absent),
            ("ethtool -i eth0", "the sosreport has only its end"),
            ("ethtool -x eth0", "the sosreport has no output of it"),
            ("virsh -r capabilities", "it was not over when sos gave up"),
        ):
            self.assertEqual(reason, self.found.unread[place])
        for read, place, reason in (
            (self.found.looks, "/proc/stat", "it was read only once"),
            (
                self.found.output,
                "ethtool -S eth0",
                "exit code 94: no stats available",
            ),
        ):
            error = self.assertRaises(NotReadError, read, place)
            self.assertEqual(reason, error.reason)

    def test_without_exit_codes(self):
        """Of sos 3, or with a manifest that is none."""
        for text in (None, "{", "[]", '{"components": {"report": {"plugins": 1}}}'):
            files = dict(reports.SOSREPORT)
            files["sos_commands/networking/ethtool_-S_eth0"] = "Cannot get: no"
            if text:
                files["sos_reports/manifest.json"] = text
            found = self.read(reports.packed(reports.sosreport(files)))
            self.assertEqual("Combined:\t20\n", found.output("ethtool -l eth0"))
            self.assertEqual(1, found.commands["ethtool -S eth0"].exit_code)

    def test_commands(self):
        self.assertEqual("Combined:\t20\n", self.found.output("ethtool -l eth0"))
        listed = self.found.output("virsh -r list --all --uuid")
        self.assertEqual(f"{reports.UUID}\n", listed)
        xml = self.found.output(f"virsh -r dumpxml {reports.UUID}")
        self.assertEqual(reports.XML, xml)

    def test_processes(self):
        self.assertEqual("qemu-kvm\n", self.found.text("/proc/7/comm"))
        self.assertIn("bind:0", self.found.text("/proc/7/numa_maps"))
        group = "/sys/fs/cgroup/machine.slice/vm.scope/cpuset.cpus.effective"
        self.assertEqual("0-3\n", self.found.text(group))
        self.assertEqual({}, self.found.matching("/proc/8/*"))


class ArchiveTest(ReadingCase):
    def members(self, *more):
        return [*reports.sosreport(), *more]

    def test_names_that_lead_elsewhere(self):
        """All are told, and nothing is taken of such an archive."""
        bad = (
            "/etc/passwd",
            f"{reports.TOP}/../../etc/passwd",
            "../x",
            "other/proc/stat",
            f"{reports.TOP}/{'x/' * 3000}",
        )
        members = self.members(*(reports.member(name, "x") for name in bad))
        said = self.assert_refused(DocumentError, "5 mistakes", reports.packed(members))
        for name in bad[:4]:
            self.assertIn(f"  {name}: ", said)

    def test_what_is_no_file_is_left_out(self):
        kinds = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.LNKTYPE)
        for kind in kinds:
            odd = reports.member(
                f"{reports.TOP}/proc/meminfo", type=kind, linkname="/etc/passwd"
            )
            found = self.read(reports.packed(self.members(odd)))
            self.assertEqual(
                "it is no file in the archive", found.unread["/proc/meminfo"]
            )

    def test_too_large(self):
        module = "nova_perfvm.measure.archive"
        data = reports.packed(self.members())
        for name, value, words in (
            ("MOST_KEPT", 100, "to look at"),
            ("MOST_UNPACKED", 100, "unpacked"),
            ("MOST_MEMBERS", 3, "more than 3 files"),
        ):
            with fixtures.MonkeyPatch(f"{module}.{name}", value):
                self.assert_refused(UnreadableFileError, words, data)

    def test_a_long_file_is_left_out(self):
        long = reports.member(f"{reports.TOP}/proc/meminfo", "x" * (16 << 20) + "x")
        found = self.read(reports.packed(self.members(long)))
        self.assertEqual(
            "it is longer than 16 MiB in the archive", found.unread["/proc/meminfo"]
        )

    def test_a_header_that_would_fill_the_memory(self):
        info = tarfile.TarInfo("././@LongLink")
        info.type, info.size = tarfile.GNUTYPE_LONGNAME, 8 << 30
        header = info.tobuf(tarfile.GNU_FORMAT)
        self.assert_refused(UnreadableFileError, "header", header + b"x" * 10_240)

    def test_a_part_of_one(self):
        for mode in ("w:gz", "w:xz", "w:bz2", "w"):
            data = reports.packed(self.members(), mode)
            # tarfile takes what is not compressed for whole wherever it ends.
            for size in (len(data) // 2, 300) if mode != "w" else (300,):
                self.assert_refused(
                    UnreadableFileError, "no archive, or only a part", data[:size]
                )

    def test_what_is_in_it(self):
        data = reports.packed([reports.member("backup/etc/passwd", "x")])
        words = ("neither collected.json nor sos_commands", "sosreport")
        self.assert_refused(UnreadableFileError, words, data)
        name = f"perfvm-guest-vm1/{collector.JSON_NAME}"
        data = reports.packed([reports.member(name, "{}")])
        self.assert_refused(DocumentError, f"({name})", data)
        text = json.dumps(reports.document())
        data = reports.packed([reports.member(f"./top/{collector.JSON_NAME}", text)])
        self.assertIsInstance(self.read(data), Collected)
