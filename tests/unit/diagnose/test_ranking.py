# SPDX-License-Identifier: Apache-2.0
import random

import testtools

from nova_perfvm.diagnose.ranking import Ranked, Ranking
from nova_perfvm.facts.dry_run import WeigherShare


def ranked(*shares):
    return Ranked(None, tuple(WeigherShare(0.0, *share) for share in shares))


class TestSmallestChange(testtools.TestCase):
    WEIGHERS = ("CPU", "RAM", "BuildFailure")

    def test_it_turns_two_hosts_round(self):
        draw = random.Random(40)
        turned = 0
        for _ in range(500):
            multipliers = [draw.choice([1.0, 2.0, 0.5]) for _ in range(2)]
            multipliers.append(-draw.choice([1.0, 1000000.0]))
            hosts = [
                ranked(*((draw.choice([0, 0.2, 0.7, 1]), m) for m in multipliers))
                for _ in range(2)
            ]
            above, below = sorted(hosts, key=lambda host: -host.weight)
            ranking = Ranking(self.WEIGHERS, (above, below))
            change = ranking.smallest_change(above, below)
            if change is None:
                continue
            turned += 1
            at = self.WEIGHERS.index(change.weigher)
            self.assertGreater(change.value * multipliers[at], 0)
            after = [
                sum(
                    share.normalised * (change.value if i == at else share.multiplier)
                    for i, share in enumerate(host.shares)
                )
                for host in (below, above)
            ]
            self.assertGreater(*after, (change, above, below))
        self.assertGreater(turned, 100)

    def test_equal_hosts(self):
        host = ranked((1, 1.0), (0, 1.0), (0, -1.0))
        self.assertIsNone(Ranking(self.WEIGHERS, ()).smallest_change(host, host))
