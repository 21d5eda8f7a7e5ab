# SPDX-License-Identifier: Apache-2.0
"""The report in a real browser: it draws all, without an error and the network."""

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
from nova_perfvm.measure.report import content, page
from nova_perfvm.measure.report.plots import plots
from tests.unit.measure import published
from tests.unit.measure.report import machines

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FACTORS = (0.9, 1.1, 1.0, 0.95, 1.05)
EVIL = '</script><script>console.error("escaped")</script><b>vm'
SIZES = {"wide": (1300, 4000), "narrow": (400, 9000)}


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

    def browse(self, *options):
        done = subprocess.run(
            [
                *(self.browser, "--headless", "--no-sandbox", "--disable-gpu"),
                *(f"--user-data-dir={self.directory / 'profile'}", "--hide-scrollbars"),
                *("--virtual-time-budget=20000", "--enable-logging=stderr", "--v=0"),
                *options,
                self.page().as_uri(),
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
        text = self.browse("--dump-dom")
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
        for name, (width, height) in SIZES.items():
            for scheme, options in (
                ("light", []),
                ("dark", ["--blink-settings=preferredColorScheme=0"]),
            ):
                with self.subTest(f"{name}, {scheme}"):
                    image = self.directory / f"{name}-{scheme}.png"
                    self.browse(
                        f"--screenshot={image}",
                        f"--window-size={width},{height}",
                        *options,
                    )
                    data = image.read_bytes()
                    self.assertEqual((width, height), struct.unpack(">II", data[16:24]))

    def test_an_error_would_be_seen(self):
        path = self.page()
        broken = path.read_text().replace('"mark"', '"marc"')
        self.page = lambda: path
        path.write_text(broken)
        self.assertRaises(AssertionError, self.browse, "--dump-dom")
