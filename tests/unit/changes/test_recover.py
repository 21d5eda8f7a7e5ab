# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.changes import recover
from nova_perfvm.diagnose.survey import survey
from tests.unit.diagnose.audit.test_checks import small
from tests.unit.diagnose.survey import clouds


def recovered(cloud):
    snapshot = cloud.snapshot()
    return recover.recovery(survey(snapshot).policy, snapshot)


def scattered():
    """Return a cloud with a small VM on one NUMA node of each of three hosts."""
    cloud = clouds.PlainCloud()
    cloud.add_flavor("db.20", 20, 128, clouds.PINNED)
    cloud.add_flavor("db.4", 4, 16, clouds.PINNED)
    for number in range(3):
        cloud.add_host(f"h{number}")
        cloud.add_pinned(f"a{number}", f"h{number}", "db.20")
        cloud.add_pinned(f"b{number}", f"h{number}", "db.4", 20, 1)
    return cloud


class RecoveryTest(testtools.TestCase):
    def test_small_vms_go_together(self):
        self.assertEqual(3, survey(scattered().snapshot()).slots.unfit)
        found = recovered(scattered())
        # Three of them fit one node.
        self.assertEqual((2, 2, 2), (found.gained, len(found.moves), found.live))
        self.assertEqual({"b"}, {move.name[0] for move in found.moves})
        self.assertEqual(2 * 16 * 1024, found.memory_mb)

    def test_nothing_to_win(self):
        for cloud in (clouds.empty(), clouds.shared_only(), small()):
            found = recovered(cloud)
            self.assertEqual((0, ()), (found.gained, found.moves))
