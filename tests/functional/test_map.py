# SPDX-License-Identifier: Apache-2.0
"""The map of a real Nova and Placement."""

from nova_perfvm import cpuset
from tests.functional import base, client
from tests.unit.diagnose.formats.map_page import data


class TestMap(client.ClientMixin, base.FunctionalTest):
    PLACEMENT = "slots"

    def test_what_is_in_place_and_what_would_be(self):
        self.cloud.start_configured("hp1", self.policy, "dedicated")
        self.cloud.start_configured("g1", self.policy, "shared")
        high, general = self.boot(), self.boot(base.GENERAL_2)

        status, text, stderr = self.run_command("map")
        self.assertEqual(0, status, stderr)
        found = data(text)

        g1, hp1 = found["hosts"]
        self.assertEqual(("g1", "hp1"), (g1["name"], hp1["name"]))
        (shared,), (pinned,) = g1["servers"], hp1["servers"]
        self.assertEqual((general.id, ""), (shared[0], shared[8]))
        guest = self.cloud.guest(self.servers.show(high))
        self.assertEqual(high.id, pinned[0])
        self.assertEqual(set(guest.pins), cpuset.parse(pinned[8]))
        self.assertEqual(guest.host_nodes, set(pinned[9]))
        ((_, total, used, free, (cpus,)),) = hp1["slots"]
        self.assertEqual((2, 1, 1), (total, used, free))
        self.assertEqual([1, 0], self.verdicts(found))

        # What is drawn as free is what the next server gets.
        second = self.boot()
        guest = self.cloud.guest(self.servers.show(second))
        self.assertEqual(set(guest.pins), cpuset.parse(cpus))
        *_, nowhere = self.verdicts(data(self.run_command("map")[1]))
        self.assertNotEqual(0, nowhere)
        self.boot_refused()

    def verdicts(self, found):
        (verdict,) = [v for v in found["verdicts"] if v["name"] == base.HP_64]
        return verdict["hosts"]
