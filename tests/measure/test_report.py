# SPDX-License-Identifier: Apache-2.0
"""The pages in a real browser: all is drawn, without an error and the network."""

from nova_perfvm.measure import samples
from nova_perfvm.measure.prove import page as proof_page
from nova_perfvm.measure.prove import proof
from nova_perfvm.measure.report import content, page
from tests.measure.browser import LookTests, PageCase
from tests.unit.measure import hosts, published
from tests.unit.measure.prove.sound import Case

FACTORS = (0.9, 1.1, 1.0, 0.95, 1.05)
EVIL = '</script><script>console.error("escaped")</script><b>vm'


class BrowserTest(LookTests, PageCase):
    def page(self):
        """Write a report of throughput and latency."""
        measured = published.repeated(published.ly_two(), FACTORS)
        measured += published.repeated(
            [
                published.measurement(
                    who, "cpu.latency_max_ms", threads, value, "lower", unit="ms"
                )
                for who, value in (("host", 0.66), (EVIL, 13.38))
                for threads in published.THREADS
            ],
            FACTORS,
        )
        run = self.directory / "run.json"
        run.write_text(samples.dumps(samples.Samples(tuple(measured))))
        found = content.read([str(run)])
        self.rows = len(found.comparisons)
        path = self.directory / "report.html"
        path.write_text(page.html(found))
        return path

    def proof(self):
        """Write the page of a proof that is refuted."""
        case = Case()
        case.host = hosts.edited(case.host, 1, ("queues='20'", "queues='4'"))
        case.run["failures"].append({"where": "fio", "who": EVIL, "reason": EVIL})
        record = case.record()
        path = self.directory / "proof.html"
        path.write_text(proof_page.html(record, proof.judged(record)))
        return path

    def pages(self):
        """Show each page in turn; yield its name."""
        for path in (self.page(), self.proof()):
            self.browser.open(path)
            yield path.name

    def test_all_is_drawn(self):
        self.browser.open(self.page())
        drawn = "[...document.querySelectorAll('svg g')].map((row) => row.getBBox())"
        most = f"{drawn}.filter((box) => box.width > 500 && box.height > 8).length"
        self.assertEqual(self.rows, self.browser.run(most))
        self.assert_no_complaint()

    def test_a_proof(self):
        self.browser.open(self.proof())
        said = "document.querySelector('p.verdict.failure').innerText"
        self.assertEqual("REFUTED", self.browser.run(said))
        self.assert_no_complaint()
