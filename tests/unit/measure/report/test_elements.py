# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.measure.report.elements import bullets, cell, table

EVIL = '<b onclick="x">'
ESCAPED = "&lt;b onclick=&quot;x&quot;&gt;"


class ElementsTest(testtools.TestCase):
    def test_text_is_escaped(self):
        self.assertEqual(f"<td>{ESCAPED}</td>", cell(EVIL))
        self.assertIn(f"<li>{ESCAPED}</li>", bullets(EVIL, [EVIL]))
        found = table([EVIL], [[cell(EVIL)]], EVIL)
        self.assertEqual(3, found.count(ESCAPED))
        self.assertNotIn(EVIL, found)

    def test_a_list_of_nothing_has_no_heading(self):
        self.assertEqual("", bullets("Tools", []))
