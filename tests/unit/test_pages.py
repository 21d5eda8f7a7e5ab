# SPDX-License-Identifier: Apache-2.0

import json
import pathlib
import re

import testtools

from nova_perfvm import pages
from tests.unit.page_elements import Elements

EVIL = '</script><b onclick="x">&\'\x1b\u202e'
TEMPLATES = sorted(pathlib.Path(pages.__file__).parent.glob("*.html"))


class Report:
    """An audit's report, as its page reads it."""

    name = taken_at = policy_digest = EVIL
    hosts = servers = 0
    findings = ()


class PagesTest(testtools.TestCase):
    def audit(self):
        values = {"counts": [(0, "failure", EVIL)], "checks": [(EVIL, EVIL, EVIL)]}
        return pages.render_page("audit.html", report=Report, **values)

    def test_every_value_is_text(self):
        text = self.audit()
        found = Elements(text)
        self.assertEqual([], found.faults)
        self.assertEqual([], found.named("script"))
        self.assertEqual([], [name for name, has in found.elements if "onclick" in has])
        # Nothing turns the direction, either.
        shown = EVIL.replace("\x1b", r"\u001b").replace("\u202e", r"\u202e")
        self.assertIn(shown, found.text)
        self.assertNotIn("\u202e", text)

    def test_only_scripts_are_taken_as_they_are(self):
        self.assertGreater(len(TEMPLATES), 5)
        for path in TEMPLATES:
            text = path.read_text()
            unescaped = re.findall(r"\{\{([^}]*)\|\s*safe\b", text)
            self.assertEqual([], [name for name in unescaped if name != " script "])
            self.assertNotIn("autoescape", text)

    def test_pages_are_forbidden_all_that_they_do_not_name(self):
        text = self.audit()
        self.assertEqual(
            "default-src 'none'; style-src 'unsafe-inline'", Elements(text).allowed
        )
        # What comes before it would be free.
        self.assertLess(text.index("http-equiv"), text.index("<style>"))
        for path in TEMPLATES:
            self.assertNotRegex(path.read_text(), r"<link|url\(|\bon\w+=")

    def test_data_cannot_end_its_element(self):
        template = pages._environment().from_string(
            "<script>{{ x | as_json }}</script>"
        )
        text = template.render(x=EVIL)
        self.assertEqual(1, text.count("</script"))
        self.assertEqual(EVIL, json.loads(text[len("<script>") : -len("</script>")]))

    def test_a_forgotten_value_is_an_error(self):
        self.assertRaisesRegex(Exception, "undefined", pages.render_page, "map.html")

    def test_times_in_words(self):
        for iso, words in (
            ("2026-01-01T01:00:00+01:00", "1 Jan 2026, 00:00 UTC"),
            ("yesterday", "yesterday"),
        ):
            self.assertEqual(words, pages.date_words(iso))
