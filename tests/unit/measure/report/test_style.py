# SPDX-License-Identifier: Apache-2.0

import re

import testtools

from nova_perfvm.measure.report import style

POLICY = r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">'


class DocumentTest(testtools.TestCase):
    def test_every_page_is_forbidden_what_it_does_not_name(self):
        page = style.document("<plain>", "<p>body</p>\n")
        self.assertIn("<title>&lt;plain&gt;</title>", page)
        (policy,) = re.findall(POLICY, page)
        self.assertEqual("default-src 'none'; style-src 'unsafe-inline'", policy)
        # What comes before it would be free.
        self.assertLess(page.index("http-equiv"), page.index("<style>"))

    def test_what_a_page_names_is_allowed(self):
        page = style.document("", "", allowed=("script-src 'self'", "img-src data:"))
        (policy,) = re.findall(POLICY, page)
        self.assertTrue(policy.endswith("; script-src 'self'; img-src data:"), policy)

    def test_the_look_of_a_page_comes_after_that_of_all(self):
        page = style.document("", "", look="p { color: red; }")
        self.assertLess(page.index(style.STYLE), page.index("p { color: red; }"))
