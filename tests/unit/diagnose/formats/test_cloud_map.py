# SPDX-License-Identifier: Apache-2.0
"""The page's text; what it looks like in a browser is in tests/measure/test_map.py."""

import base64
import hashlib
import re

import testtools

from nova_perfvm.diagnose import cloud_map, overview
from nova_perfvm.diagnose.formats.cloud_map import html
from tests.unit.diagnose.formats.map_page import data
from tests.unit.facts.snapshot.clouds import POLICY, Cloud
from tests.unit.page_elements import Elements

# Ends the element, is a comment that hides the next ending, turns the direction, and
# is what JavaScript takes for a line end.
EVIL = "</script><img src=x onerror=alert(1)><!--<script>\u202e\u2028\x1b[2J&amp;"
HARMLESS = EVIL.replace("\u202e", r"\u202e").replace("\u2028", r"\u2028")
HARMLESS = HARMLESS.replace("\x1b", r"\u001b")


def page(cloud):
    return html(cloud_map.document(overview.look(POLICY, cloud.snapshot())))


class PageTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        self.cloud.add_host("hp1")
        self.cloud.add_hp("a", "hp1")

    def test_names_are_text(self):
        plain = Elements(page(self.cloud))
        self.cloud.add_host(EVIL)
        self.cloud.add_hp(EVIL, EVIL, project=EVIL, status=EVIL)
        self.cloud.parts["gaps"] = (f"images: {EVIL}",)
        text = page(self.cloud)
        seen = Elements(text)
        self.assertEqual([], seen.named("img"))
        self.assertEqual(len(plain.named("script")), len(seen.named("script")))
        self.assertIn(f"images: {HARMLESS}", seen.text)
        found = data(text)
        self.assertEqual(HARMLESS, found["hosts"][1]["name"])
        self.assertEqual(HARMLESS, found["hosts"][1]["servers"][0][1])
        self.assertEqual([f"images: {HARMLESS}"], found["gaps"])

    def test_only_its_own_script_may_run(self):
        text = page(self.cloud)
        seen = Elements(text)
        self.assertEqual([], seen.faults)
        self.assertNotIn("url(", text)
        handlers = [k for _, attrs in seen.elements for k in attrs if k[:2] == "on"]
        self.assertEqual([], handlers)
        script = text.rpartition("<script>")[2].partition("</script>")[0]
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        self.assertEqual(
            "default-src 'none'; style-src 'unsafe-inline'; "
            f"script-src 'sha256-{digest}'",
            seen.allowed,
        )

    def test_every_field_has_a_label(self):
        text = page(self.cloud)
        fields = re.findall(r"<(?:input|select)[^>]*id=\"(\w+)\"", text)
        self.assertEqual(["search", "state", "mode", "aggregate", "flavor"], fields)
        labelled = re.findall(r"<label>[^<]+<(?:input|select)[^>]*id=\"(\w+)\"", text)
        self.assertEqual(fields, labelled)

    def test_counts_of_slots_and_findings(self):
        self.cloud.add_hp("b", "hp1", count=0)
        words = Elements(page(self.cloud)).text
        self.assertIn("0 of 2slots free for high-performance", words)
        self.assertIn("1failure", words)
        self.assertIn("1 host and 2 servers, seen 1 Jan 2026, 00:00 UTC", words)
