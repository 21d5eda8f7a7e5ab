# SPDX-License-Identifier: Apache-2.0
"""The pages in a real browser: all is drawn, without an error and the network."""

from nova_perfvm.measure import samples
from nova_perfvm.measure.prove import page as certify_page
from nova_perfvm.measure.prove import record
from nova_perfvm.measure.report import content, page
from nova_perfvm.measure.report.plots import plots
from tests.bench.browser import LookTests, PageCase
from tests.unit.measure import guests, hosts, published
from tests.unit.measure.prove.sound import Case

FACTORS = (0.9, 1.1, 1.0, 0.95, 1.05)
EVIL = '</script><script>console.error("escaped")</script><b>vm'


class BrowserTest(LookTests, PageCase):
    def page(self):
        """Write a report with every kind of plot."""
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
        collected = []
        for name, seen in (
            ("host", hosts.renamed(hosts.host(), 2, EVIL)),
            ("guest", guests.guest()),
        ):
            path = self.directory / f"{name}.json"
            path.write_text(hosts.as_json(seen))
            collected.append(str(path))
        found = content.read([str(run)], collected)
        self.plots = list(plots(found))
        path = self.directory / "report.html"
        path.write_text(page.html(found))
        return path

    def certificate(self):
        """Write the page of a certificate that is refused, and worse than before."""
        case = Case()
        _, before = case.made(self.directory)
        previous = self.directory / "before.json"
        previous.write_text(record.dumps(before))
        case.host = hosts.edited(case.host, 1, ("queues='20'", "queues='4'"))
        case.run["failures"].append({"where": "fio", "who": EVIL, "reason": EVIL})
        _, found = case.made(
            self.directory, previous=str(previous), signed_off_by=EVIL * 9
        )
        self.assertEqual("refused", found["verdict"])
        path = self.directory / "record.html"
        path.write_text(certify_page.html(found))
        return path

    def show(self, path, plots=0):
        """Show a page, and wait until its plots are drawn."""
        self.browser.open(path)
        self.browser.run(
            "new Promise((done) => { const look = () => "
            f"Number(document.documentElement.dataset.drawn ?? 0) >= {plots} "
            "? done() : setTimeout(look, 100); look(); })"
        )

    def pages(self):
        """Show each page in turn; yield its name."""
        path = self.page()
        self.show(path, len(self.plots))
        yield path.name
        path = self.certificate()
        self.show(path)
        yield path.name

    def test_all_is_drawn(self):
        path = self.page()
        self.assertEqual(
            [
                "Ratios by threads",
                "Latency tails",
                "Interrupts by CPU",
                "Pins by NUMA node",
            ],
            list(dict.fromkeys(plot.section for plot in self.plots)),
        )
        self.show(path, len(self.plots))
        drawn = "document.querySelectorAll('svg.marks').length"
        self.assertEqual(len(self.plots), self.browser.run(drawn))
        self.assert_no_complaint()

    def test_a_certificate(self):
        self.show(self.certificate())
        said = "document.querySelector('p.verdict.failure').innerText"
        self.assertEqual("REFUSED", self.browser.run(said))
        self.assert_no_complaint()

    def test_an_error_would_be_seen(self):
        path = self.page()
        path.write_text(path.read_text().replace('"mark"', '"marc"'))
        self.show(path)
        for _ in range(120):
            self.browser.run("new Promise((done) => setTimeout(done, 500))")
            if self.browser.complaints:
                break
        self.assertNotEqual([], self.browser.complaints)
