# SPDX-License-Identifier: Apache-2.0
"""The audit of a saved snapshot by the console script, in every format."""

import csv
import dataclasses
import importlib.metadata
import io
import json
import unicodedata
from xml.etree import ElementTree as ET

import fixtures
import yaml

from nova_perfvm import constants as const
from nova_perfvm.diagnose import audit
from nova_perfvm.facts.snapshot import Image
from nova_perfvm.findings import ACCEPTABLE, AUDIT_CODES, LEVELS
from nova_perfvm.policy import loader
from tests.unit.diagnose.audit.test_checks import small
from tests.unit.osc.base import CommandCase
from tests.unit.page_elements import Elements

# Clears the screen, forges a line, turns the direction, and is no Unicode.
EVIL = "a\x1b[2J\r\nforged\u202e\x9b\u2028\ud800"


# Nothing was collected, and there is no Cinder.
CHECKS = [
    check for check in audit.selected(audit.Selection.AUDIT) if check.need is None
]


class AuditCommandTest(CommandCase):
    def setUp(self):
        super().setUp()
        cloud = small()
        self.clean = self.save(cloud, "clean")
        cloud.add_general("<b>&\x07", "hp1")
        self.mixed = self.save(cloud, "mixed")
        self.conf = self.directory / "placement.conf"
        self.conf.write_text("[placement]\nallocation_conflict_retry_count = 1\n")

    def audit(self, path, *options):
        status = self.run_command("audit", "--snapshot", path, *options)
        return status, self.stdout, self.stderr

    def test_exit_codes(self):
        conf = ["--placement-conf", self.conf]
        for path, options, expected in (
            (self.clean, [*conf, "--strict"], 0),
            (self.clean, [], 0),
            (self.clean, ["--strict"], 1),
            (self.mixed, conf, 2),
        ):
            status, _, stderr = self.audit(path, *options)
            self.assertEqual(expected, status, f"{options} {stderr}")
        self.conf.write_text("[placement]\n")
        self.assertEqual(2, self.audit(self.clean, *conf)[0])

    def test_formats_of_the_client(self):
        _, stdout, stderr = self.audit(self.mixed)
        self.assertIn("audit.classes_mixed", stdout)
        self.assertEqual(
            f"policy: built-in (sha256 {loader.load().digest[:8]})\n"
            f"{len(CHECKS)} checks on 2 hosts and 4 servers: 1 failure, "
            "0 warning, 1 unknown, 0 note\n",
            stderr,
        )
        rows = json.loads(self.audit(self.mixed, "-f", "json")[1])
        self.assertEqual("failure", rows[0]["Level"])
        migrate, confirm = rows[0]["Remedy"].splitlines()
        self.assertEqual("openstack server migrate i-<b>&\x07 --wait", migrate)
        self.assertEqual("openstack server resize confirm i-<b>&\x07", confirm)
        self.assertEqual(rows, yaml.safe_load(self.audit(self.mixed, "-f", "yaml")[1]))
        read = csv.reader(io.StringIO(self.audit(self.mixed, "-f", "csv")[1]))
        self.assertEqual(3, len(list(read)))

    def test_junit(self):
        suite = ET.fromstring(self.audit(self.mixed, "-f", "junit")[1])
        self.assertEqual(
            ("perfvm audit", str(len(CHECKS)), "1", "1"),
            tuple(suite.get(n) for n in ("name", "tests", "failures", "skipped")),
        )
        names = [case.get("name") for case in suite.iter("testcase")]
        self.assertEqual([check.title for check in CHECKS], names)
        (failure,) = suite.iter("failure")
        self.assertIn(r"openstack server migrate i-<b>&\u0007", failure.text)

    def test_notes_fail_nothing(self):
        cloud = small()
        off = {const.IMAGE_VIF_MULTIQUEUE: "no"}
        image = Image("image", "theirs", off, owner="t", visibility="private")
        cloud.parts["images"] = (image,)
        path = self.save(cloud, "noted")
        status, _, stderr = self.audit(path)
        self.assertEqual(0, status)
        self.assertIn("0 warning, 1 unknown, 1 note\n", stderr)
        for formatter, words in (
            ("prometheus", '{code="audit.tenant_image",level="note"} 1\n'),
            ("html", '<article class="note">'),
            ("junit", "<system-out>note: audit.tenant_image image theirs"),
        ):
            self.assertIn(words, self.audit(path, "-f", formatter)[1])

    def test_prometheus(self):
        text = self.audit(self.mixed, "-f", "prometheus")[1]
        samples = dict(
            line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#"
        )
        acceptable = [c for c in AUDIT_CODES if LEVELS[c] in ACCEPTABLE]
        self.assertEqual(len(AUDIT_CODES) + len(acceptable) + 3, len(samples))
        found = {name: set() for name in ("findings", "accepted")}
        for name, codes in found.items():
            prefix = f'perfvm_audit_{name}{{code="'
            codes |= {s[len(prefix) :].split('"')[0] for s in samples if prefix in s}
        self.assertEqual(
            {"findings": set(AUDIT_CODES), "accepted": set(acceptable)}, found
        )
        mixed = 'perfvm_audit_findings{code="audit.classes_mixed",level="failure"}'
        self.assertEqual("1", samples[mixed])
        self.assertEqual("1767225600", samples["perfvm_audit_timestamp_seconds"])

    def test_what_the_policy_accepts_is_a_note(self):
        cloud = small()
        cloud.flavors["odd"] = dataclasses.replace(
            next(iter(cloud.flavors.values())),
            id="odd",
            name="odd",
            extra_specs={"perfvm_class": "general"},
        )
        path = self.save(cloud, "accepted")
        policy = self.directory / "accepting.yaml"
        accepted = ["audit.near_miss", "audit.retry_count_unknown"]
        policy.write_text(yaml.safe_dump({"schema_version": "1.0", "accept": accepted}))
        self.assertEqual(1, self.audit(path)[0])
        options = (path, "--policy", policy)
        status, stdout, stderr = self.audit(*options, "-f", "json")
        self.assertEqual(0, status, stderr)
        self.assertIn("0 warning", stderr)
        (row,) = (r for r in json.loads(stdout) if r["Code"] == "audit.near_miss")
        self.assertEqual("note", row["Level"])
        self.assertIn("(accepted in the policy)", row["Observed"])
        metrics = self.audit(*options, "-f", "prometheus")[1]
        for line in (
            'perfvm_audit_findings{code="audit.near_miss",level="warning"} 0\n',
            'perfvm_audit_accepted{code="audit.near_miss"} 1\n',
        ):
            self.assertIn(line, metrics)

    def test_html(self):
        for path, words in (
            (self.mixed, r"openstack server migrate i-<b>&\u0007"),
            (self.clean, "Hosts offer what the policy says"),
        ):
            text = self.audit(path, "-f", "html")[1]
            found = Elements(text)
            self.assertEqual([], found.faults)
            self.assertIn(words, found.text)

    def test_output_file(self):
        path = self.directory / "perfvm.prom"
        path.write_text("old")
        options = ["-f", "prometheus", "--output", path]
        status, stdout, _ = self.audit(self.mixed, *options)
        self.assertEqual((2, ""), (status, stdout))
        self.assertIn("perfvm_audit_findings", path.read_text())
        before = path.read_text()
        self.assertEqual(3, self.audit(self.directory / "none", *options)[0])
        self.assertEqual(before, path.read_text())

    def test_mistakes_are_said_in_one_go(self):
        """Whatever a file has in it, the status is that of what cannot tell."""
        broken = self.directory / "broken"
        broken.write_text('{"schema_version": "1.0", "hosts": 1}')
        untimed = self.directory / "untimed"
        untimed.write_text('{"schema_version": "1.0", "taken_at": "x"}')
        odd = self.directory / "odd"
        odd.mkdir()
        given = ["--snapshot", self.clean]
        for arguments, words in (
            (["--snapshot", broken], "hosts: found 1, expected a list"),
            (["--snapshot", broken], "taken_at: missing"),
            (["--snapshot", untimed, "-f", "prometheus"], "taken_at: found 'x'"),
            ([*given, "--placement-conf", "/no"], "/no cannot be read"),
            ([*given, "--output", "/no/no"], "cannot write /no/no"),
            ([*given, "--policy", odd], str(odd)),
            ([*given, "--placement-conf", odd], str(odd)),
        ):
            self.assert_refused(3, words, "audit", *arguments)

    def test_names_that_a_terminal_would_act_on(self):
        cloud = small()
        # Nova takes no line ends in names of servers, Glance does in those of images.
        name = EVIL.replace("\n", "") + "<script>"
        image = Image("image", EVIL, {const.IMAGE_VIF_MULTIQUEUE: "no"})
        cloud.parts["images"] = (image,)
        cloud.parts["gaps"] = (f"images: {name}",)
        cloud.add_hp(name, "hp1", count=0)
        path = self.save(cloud, "evil")
        file = self.directory / "file"
        formatters = importlib.metadata.entry_points(
            group="nova_perfvm.report.formatter"
        )
        self.assertGreater(len(formatters), 6)
        for formatter in sorted(formatters.names):
            said = self.audit(path, "-f", formatter)
            self.assert_harmless("".join(said[1:]))
            self.audit(path, "-f", formatter, "--output", file)
            self.assertEqual(said[1], file.read_text(encoding="utf-8"))
        self.assertIn(r"image a\u001b[2J", self.audit(path, "-f", "value")[1])
        # What machines read says what the name is.
        for formatter, read in (("json", json.loads), ("yaml", yaml.safe_load)):
            rows = read(self.audit(path, "-f", formatter)[1])
            subjects = {row["Subject"] for row in rows}
            self.assertIn(f"{name} (i-{name})", subjects)

    def assert_harmless(self, text):
        categories = {unicodedata.category(c) for c in text.replace("\n", "")}
        self.assertEqual(set(), categories & {"Cc", "Cf", "Cs", "Zl", "Zp"})
        self.assertNotIn("\nforged", text)

    def test_an_error_that_nobody_foresaw(self):
        def fail(_path):
            raise ZeroDivisionError("in the code")

        self.useFixture(fixtures.MonkeyPatch("nova_perfvm.facts.snapshot.load", fail))
        status, stdout, stderr = self.audit(self.clean)
        self.assertEqual((3, ""), (status, stdout))
        self.assertIn("ZeroDivisionError: in the code", stderr)
