# SPDX-License-Identifier: Apache-2.0
"""What a run says of how far it is, and how long it still takes."""

from unittest import mock

import testtools

from nova_perfvm.measure.bench import run, scenario
from nova_perfvm.measure.bench.record import Record
from tests.directory import DirectoryCase
from tests.unit.measure.bench.test_scenario import SMALL

ONE_TOOL = SMALL[: SMALL.index("  iperf3")].replace("  generator: {kind: host}\n", "")


def steps(count, seconds):
    return [mock.Mock(run=mock.Mock(seconds=seconds)) for _ in range(count)]


class TimeLeftTest(testtools.TestCase):
    def test_before_anything_is_known(self):
        # Two seconds beside the tool's own time.
        for count, seconds, words in (
            (1, 1, "3 s"),
            (1, 57, "59 s"),
            (1, 58, "1 min 00 s"),
            (10, 30, "5 min 20 s"),
            (119, 28, "59 min 30 s"),
            (120, 28, "1 h 00 min"),
            (600, 58, "10 h 00 min"),
        ):
            self.assertEqual(words, run._remaining(steps(count, seconds), []))

    def test_the_time_that_steps_took_beside_is_learnt(self):
        self.assertEqual("2 min 20 s", run._remaining(steps(10, 10), [4.0]))
        self.assertEqual("1 min 50 s", run._remaining(steps(10, 10), [0.5, 1.5]))


class ProgressTest(DirectoryCase):
    def setUp(self):
        super().setUp()
        text = f"{ONE_TOOL}repeats: 5\nwarm_up: 0\n".replace(
            "threads: [1, 4]", "threads: [1], seconds: 10"
        )
        self.scenario = scenario.parse(text)
        path = str(self.directory / "run.json")
        self.record = Record.begin(path, self.scenario)
        self.now = 0.0

    async def record_step(self, running, record, _warn):
        """Take five seconds more than the tool alone."""
        self.now += running.step.run.seconds + 5
        record.step(running.step, (), {"started_at": "2026-11-22T00:00:00+00:00"})

    def told(self):
        """Run what is left, and return what was shown meanwhile."""
        shown = []

        def recorded(running, record, warn):
            return self.record_step(running, record, warn)

        with (
            mock.patch.object(run, "_looks", mock.AsyncMock(return_value={})),
            mock.patch.object(run._RunningStep, "record", recorded),
            mock.patch.object(run.time, "monotonic", lambda: self.now),
        ):
            run.run(self.scenario, self.record, lambda *a: shown.append(a), self.fail)
        return shown

    def test_each_step_says_how_far_it_is(self):
        first, *told = self.told()
        self.assertEqual(("looking at the targets", 0, 0), first)
        self.assertEqual([(n, 10) for n in range(1, 11)], [one[1:] for one in told])
        titles, left = zip(*(one[0].rsplit("; ", 1) for one in told), strict=True)
        self.assertEqual(
            [s.title for s in self.scenario.steps(self.record.run["seed"])],
            list(titles),
        )
        self.assertEqual(
            ["2 min 00 s left", "2 min 15 s left", "2 min 00 s left"], list(left[:3])
        )
        self.assertEqual("15 s left", left[-1])
