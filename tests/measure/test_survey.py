# SPDX-License-Identifier: Apache-2.0
"""The survey's page in a real browser: read, by keyboard, narrow, dark."""

from nova_perfvm.changes import recover
from nova_perfvm.diagnose.survey import survey
from nova_perfvm.osc.formats.survey import SurveyReport, html
from tests.measure.browser import OPEN, LookTests, PageCase
from tests.unit.changes.test_recover import scattered
from tests.unit.diagnose.survey import clouds


def gaps():
    """Return a cloud of which not all was seen."""
    cloud = clouds.pools()
    cloud.parts["gaps"] = ("images: no Glance",)
    return cloud


class SurveyPageCase(PageCase):
    def show(self, cloud, *, opened=True):
        """Show the page that the command would write."""
        snapshot = cloud.snapshot()
        found = survey(snapshot)
        won = recover.recovery(found.policy, snapshot) if found.policy else None
        self.show_text(html(SurveyReport(found, won)))
        if opened:
            self.browser.run(f"{OPEN}; null")
            self.browser.settle()

    def pages(self):
        """Show pages with all that there is, and with little; yield their names."""
        for make in (gaps, scattered, clouds.empty):
            self.show(make())
            yield make.__name__


class SurveyPageTest(SurveyPageCase):
    def test_all_parts_are_shown(self):
        self.show(gaps(), opened=False)
        self.assertEqual(["What would it bring me?"], self.texts("h1"))
        self.assertEqual(
            [
                "Slots for VMs of 20 vCPUs",
                "Not seen",
                "Hosts",
                "VMs with CPUs of their own",
                "What enforcing would refuse",
                "What violates the policy today",
                "A policy for this cloud",
                "The way there",
                "Host by host",
            ],
            self.texts("h2"),
        )
        counts = self.texts("ul.counts li")
        self.assertIn("3 used", " ".join(counts[0].split()))
        height = "document.documentElement.scrollHeight"
        before = self.browser.run(height)
        self.browser.run(f"{OPEN}; null")
        self.assertGreater(self.browser.run(height), before)
        self.assertIn("schema_version", self.texts("details pre")[-1])
        self.assert_no_complaint()

    def test_keyboard(self):
        self.show(scattered(), opened=False)
        focused = "document.activeElement.tagName"
        opened = "document.activeElement.parentElement.open"
        seen = []
        for _ in range(20):
            self.browser.press("Tab")
            seen.append(self.browser.run(focused))
            if seen[-1] == "SUMMARY":
                self.browser.press("Enter")
                self.assertTrue(self.browser.run(opened))
                self.browser.press("Enter")
                self.assertFalse(self.browser.run(opened))
        summaries = self.browser.run("document.querySelectorAll('summary').length")
        self.assertGreater(summaries, 2)
        self.assertGreaterEqual(seen.count("SUMMARY"), summaries)
        # What scrolls is reached, too.
        self.assertIn("DIV", seen)
        self.assert_no_complaint()


class SurveyLookTest(LookTests, SurveyPageCase):
    """How it looks."""
