# SPDX-License-Identifier: Apache-2.0
"""What explain says beside a real Placement; tests/sandbox compares it at length."""

from tests.functional import base, client


class TestSlots(client.ClientMixin, base.FunctionalTest):
    PLACEMENT = "slots"

    def test_the_command(self):
        self.cloud.start_configured("hp1", self.policy, "dedicated")
        hosts = [self.boot().host, self.boot().host]
        self.assertEqual(["hp1", "hp1"], hosts)
        status, stdout, _ = self.run_command("capacity", "show", "-f", "value")
        self.assertEqual((0, "hp1 high-performance 2 2 0 0\n"), (status, stdout))
        failed = self.boot_refused()

        status, (row,), stderr = self.run_json("explain", "--server", failed.id)

        self.assertEqual(1, status, stderr)
        self.assertEqual(["hp1"], row["Hosts"])
        self.assertEqual("placement.resource, host.no_free_slot", row["Reason"])
        slot = next(r for r in row["Detail"] if "PERFVM_SLOT" in r["message"])
        self.assertEqual("CUSTOM_PERFVM_SLOT: need 1, 0 of 2 free", slot["message"])
        self.assertEqual(("placement.resource", "hp1"), (slot["code"], slot["host"]))
        # A VM like those that are there: no other host would take one of them.
        self.assertIsNone(row["Fix"])
        words = "blocking servers for which other hosts lack room are on: hp1"
        self.assertIn(words, stderr)
        self.assertIn("No valid host was found", stderr)
        self.assertIn("assumed symmetric", stderr)
        status, stdout, _ = self.run_command(
            "explain", "--flavor", base.HP_64, "--long"
        )
        self.assertEqual(1, status)
        self.assertIn("NUMA node 0: 0 of 20 pCPUs free, need 20", stdout)
        self._bad_input()
        self.cloud.start_configured("g1", self.policy, "shared")
        explain = ("explain", "--flavor", base.HP_64, "--host", "g1", "--long")
        _, (row,), _ = self.run_json(*explain)
        said = [reason["message"] for reason in row["Detail"]]
        self.assertIn("PCPU: need 20, the host has none", said)

    def _bad_input(self):
        for words, *arguments in (
            ("there is no server 'x'", "--server", "x"),
            ("no compute host 'x'", "--flavor", base.HP_64, "--host", "x"),
            ("there is no /no/file", "--flavor", "x", "--from-nova-db", "/no/file"),
            # Glance is not there beside this cloud.
            ("the images could not be listed", "--flavor", base.HP_64, "--image", "x"),
        ):
            status, stdout, stderr = self.run_command("explain", *arguments)
            self.assertEqual((3, ""), (status, stdout))
            self.assertIn(words, stderr.splitlines()[-1])

    def test_traits_of_a_provider_that_gives_nothing(self):
        """Placement looks for them where the unsuffixed group's resources are."""
        trait = "CUSTOM_FAST_NIC"
        self.cloud.start_configured("hp1", self.policy, "dedicated")
        body = {"name": "nic", "parent_provider_uuid": self.provider("hp1")}
        self.admin_api.placement("POST", "/resource_providers", body)
        self.admin_api.placement("PUT", f"/traits/{trait}")
        self.change_traits("nic", more=[trait])
        asked = {"extra_specs": {f"trait:{trait}": "required"}}
        self.cloud.api.post_extra_spec(base.HP_64, asked)
        self.assert_not_filtered(self.boot_refused())
        _, (row,), _ = self.run_json("explain", "--flavor", base.HP_64)
        self.assertEqual("placement.groups", row["Reason"])
