# SPDX-License-Identifier: Apache-2.0
"""The survey of a thousand hosts."""

import resource

from tests.unit.diagnose.survey import clouds
from tests.unit.osc.test_survey import SurveyCase

# As operators were promised it
LIMIT_CPU_S = 60


class LargeTest(SurveyCase):
    def test_a_thousand_hosts(self):
        cloud = clouds.PlainCloud()
        cloud.add_flavor("db.20", 20, 128, clouds.PINNED)
        cloud.add_flavor("db.4", 4, 16, clouds.PINNED)
        for number in range(1000):
            name = f"h{number}"
            if number % 3:
                cloud.add_open_host(name)
                for index in range(10):
                    cloud.add_shared(f"{name}-{index}", name)
                continue
            cloud.add_host(name)
            cloud.add_pinned(f"a{name}", name, "db.20")
            cloud.add_pinned(f"b{name}", name, "db.4", 20, 1)
        path = self.save(cloud)
        before = resource.getrusage(resource.RUSAGE_SELF)
        options = ("-f", "html", "--policy-out", str(self.policy))
        status = self.run_command("survey", "--snapshot", path, *options)
        after = resource.getrusage(resource.RUSAGE_SELF)
        self.assertEqual(0, status, self.stderr)
        self.assertIn("1000 hosts, 7328 VMs, 668 with CPUs", self.stderr)
        self.assertLess(after.ru_utime - before.ru_utime, LIMIT_CPU_S)
