# SPDX-License-Identifier: Apache-2.0
"""Hosts of a running cloud, taken in by the playbook that is printed for it."""

from tests.sandbox import base
from tests.sandbox.base import GENERAL, HP
from tests.sandbox.host_playbook import REASON, SECOND, HostPlaybookMixin, nameless


class HostPlaybookTest(HostPlaybookMixin, base.SandboxTest):
    HOSTS = "2xshared:2x20,1xdedicated:2x20"

    def test_hosts_are_taken_in_one_after_the_other(self):
        self.print_playbook()
        server = self.boot(GENERAL, host="shared1")["id"]
        hosts = {
            # Nobody is on it; its slots and their trait go.
            "dedicated1": {"perfvm_mode": "shared"},
            # Its server can go to the one before, at first nowhere.
            "shared1": {"perfvm_mode": "dedicated"},
            "shared2": {"perfvm_mode": "shared"},
        }
        nowhere = ["--exclude", "dedicated1", "--exclude", "shared2"]
        stuck = hosts["shared1"] | {"perfvm_drain_options": nowhere}
        before = self.state()

        status, said = self.play(hosts, "--check", "--limit", "shared1")
        self.assertEqual(0, status, said)
        self.assertRegex(said, f"server migrate --live-migration .* {server}")
        self.assertIn("to be dedicated, slots: 2: drain it, write ", said)
        self.assertEqual(before, self.state())

        # It ends at the first host that cannot be emptied.
        status, said = self.play(hosts | {"shared1": stuck})
        self.assertEqual(2, status, said)
        for words in (
            "SERVER stays: no host was found for it",
            "The host stays disabled. No further host is begun.",
            "See why they stay by openstack perfvm plan drain shared1",
        ):
            self.assertIn(words, nameless(said))
        self.assert_changed({"dedicated1", "shared1"}, said)
        self.assertNotIn(
            "[shared2]", said[said.index("PLAY [Configure and enroll the hosts") :]
        )
        services = self.services()
        self.assertEqual(("disabled", REASON), services.pop("shared1"))
        self.assertEqual({("enabled", None)}, set(services.values()))
        self.assertEqual("shared1", base.host_of(self.show(server)))
        self.assertNotIn("CUSTOM_PERFVM_HIGH_PERFORMANCE", self.traits("dedicated1"))
        self.assertFalse(self.provider("dedicated1").exists())

        # The next run goes on; nova-compute does not start.
        second = self.provider("shared1").with_name("second.yaml")
        second.write_text(SECOND)
        broken = hosts["shared1"] | {"perfvm_wait_s": 20}
        status, said = self.play(hosts | {"shared1": broken}, "--limit", "shared1")
        self.assertEqual(2, status, said)
        self.assertIn("has not reported for 20 s since it was restarted", said)
        self.assertIn("See the log of nova-compute on the host", said)
        self.assertEqual(("disabled", REASON), self.services()["shared1"])
        self.assertNotEqual("shared1", base.host_of(self.show(server)))

        second.unlink()
        status, said = self.play(hosts, "--limit", "shared1")
        self.assertEqual(0, status, said)
        self.assert_changed({"shared1"}, said)
        self.assertEqual({("enabled", None)}, set(self.services().values()))
        # One that is there is no reason to drain it.
        vm = self.boot(HP, host="shared1")
        self.assert_high_performance(vm)

        settled = self.state()
        status, said = self.play(hosts, "--limit", "shared1")
        self.assertEqual(0, status, said)
        self.assert_changed(set(), said)
        self.assertEqual(settled, self.state())
