# SPDX-License-Identifier: Apache-2.0
"""Pages of the documentation on a narrow screen, by their style sheet."""

import pathlib

from tests.measure.browser import PageCase

CSS = pathlib.Path(__file__).parents[2] / "doc/source/_static/perfvm.css"
NAME = "test_exclusivity.TestMisfits.test_what_is_pinned_and_of_no_class_is_refused"
ROW = f"<td>general</td><td>(<code class='literal'><span>{NAME}</span></code>)</td>"


class NarrowTest(PageCase):
    def width(self, css):
        """Return how wide a page with a table of long names is at 420 pixels."""
        rows = f"<tr>{ROW * 2}</tr>" * 3
        self.show_text(
            "<!DOCTYPE html><style>code span { white-space: nowrap } "
            f"{css}</style><table class='docutils'>{rows}</table>"
            f"<p><code class='literal'><span>{NAME * 2}</span></code></p>"
        )
        self.browser.resize(420, 900)
        self.browser.settle()
        return self.browser.run("document.documentElement.scrollWidth")

    def test_tables_and_names_fit(self):
        self.assertGreater(self.width(""), 420)
        self.assertEqual(420, self.width(CSS.read_text()))
        cell = "document.querySelector('td').offsetWidth"
        self.assertGreater(self.browser.run(cell), 100)
