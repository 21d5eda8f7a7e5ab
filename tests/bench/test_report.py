# SPDX-License-Identifier: Apache-2.0
"""The pages in a real browser: all is drawn, without an error and the network."""

import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import fixtures
import testtools

from nova_perfvm.measure import samples
from nova_perfvm.measure.certify import page as certify_page
from nova_perfvm.measure.certify import record
from nova_perfvm.measure.report import content, page
from nova_perfvm.measure.report.plots import plots
from tests.unit.measure import hosts, published
from tests.unit.measure.certify.sound import Case
from tests.unit.measure.report import machines

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FACTORS = (0.9, 1.1, 1.0, 0.95, 1.05)
EVIL = '</script><script>console.error("escaped")</script><b>vm'
SIZES = {"wide": (1300, 4000), "narrow": (400, 9000)}
# Windows without a screen are 500 wide at least, frames may be narrower.
NARROW = """<!DOCTYPE html><iframe src="{name}" width="400" height="900"
style="border: 0"></iframe>
<script>
setInterval(() => {{
  const page = document.querySelector("iframe");
  const root = page.contentDocument.documentElement;
  root.querySelectorAll("details").forEach((one) => {{ one.open = true; }});
  const drawn = root.dataset.drawn ?? 0;
  document.documentElement.dataset.found =
    [page.contentWindow.innerWidth, root.scrollWidth, drawn].join(" ");
}}, 200);
</script>
"""


class BrowserTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.browser = next(filter(None, map(shutil.which, BROWSERS)), None)
        if self.browser is None:
            why = f"no browser: none of {', '.join(BROWSERS)} is installed"
            print(f"SKIPPED {self.id()}: {why}", file=sys.stderr)  # noqa: T201
            self.skipTest(why)
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

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
        for name, document in (
            ("host", machines.host(("vm1", EVIL))),
            ("guest", machines.guest()),
        ):
            path = self.directory / f"{name}.json"
            path.write_text(json.dumps(document))
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

    def browse(self, path, *options):
        done = subprocess.run(
            [
                *(self.browser, "--headless", "--no-sandbox", "--disable-gpu"),
                *(f"--user-data-dir={self.directory / 'profile'}", "--hide-scrollbars"),
                *("--virtual-time-budget=20000", "--enable-logging=stderr", "--v=0"),
                *options,
                path.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual([], re.findall(r".*CONSOLE.*", done.stderr))
        return done.stdout

    def test_all_is_drawn(self):
        text = self.browse(self.page(), "--dump-dom")
        self.assertEqual(
            [
                "Ratios by threads",
                "Latency tails",
                "Interrupts by CPU",
                "Pins by NUMA node",
            ],
            list(dict.fromkeys(plot.section for plot in self.plots)),
        )
        self.assertIn(f'data-drawn="{len(self.plots)}"', text)
        drawn = re.findall(r'<svg [^>]*class="marks"', text)
        self.assertEqual(len(self.plots), len(drawn))

    def test_light_dark_wide_and_narrow(self):
        page = self.page()
        for name, (width, height) in SIZES.items():
            for scheme, options in (
                ("light", []),
                ("dark", ["--blink-settings=preferredColorScheme=0"]),
            ):
                with self.subTest(f"{name}, {scheme}"):
                    image = self.directory / f"{name}-{scheme}.png"
                    self.browse(
                        page,
                        f"--screenshot={image}",
                        f"--window-size={width},{height}",
                        *options,
                    )
                    data = image.read_bytes()
                    self.assertEqual((width, height), struct.unpack(">II", data[16:24]))

    def test_a_certificate(self):
        text = self.browse(self.certificate(), "--dump-dom")
        self.assertRegex(text, r'<p class="verdict critical">refused</p>')

    def test_nothing_is_wider_than_a_narrow_screen(self):
        for path in (self.page(), self.certificate()):
            with self.subTest(path.name):
                frame = self.directory / "frame.html"
                frame.write_text(NARROW.format(name=path.name))
                options = ("--dump-dom", "--allow-file-access-from-files")
                found = re.search(
                    r'data-found="(\d+) (\d+) (\d+)"', self.browse(frame, *options)
                )
                plots = len(self.plots) if path.name == "report.html" else 0
                self.assertEqual(("400", str(plots)), found.group(1, 3))
                self.assertLessEqual(int(found[2]), 400)

    def test_an_error_would_be_seen(self):
        path = self.page()
        broken = path.read_text().replace('"mark"', '"marc"')
        path.write_text(broken)
        self.assertRaises(AssertionError, self.browse, path, "--dump-dom")
