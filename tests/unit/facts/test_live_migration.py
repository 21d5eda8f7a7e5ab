# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.facts.live_migration import obstacle
from nova_perfvm.facts.prefilters import Keys

TPM = {"hw:tpm_version": "2.0"}
SECURITY = "hw:tpm_secret_security"


class ObstacleTest(testtools.TestCase):
    def test_it_says_which_key(self):
        for specs, properties, words in (
            ({}, {}, None),
            ({"hw:watchdog_action": "reset"}, {"os_secure_boot": "required"}, None),
            (TPM, {}, f"{SECURITY}=user"),
            (TPM | {SECURITY: "deployment"}, {}, f"{SECURITY}=deployment"),
            (TPM | {SECURITY: "host"}, {}, None),
            ({}, {"hw_tpm_version": "1.2"}, f"{SECURITY}=user"),
            ({"hw:mem_encryption": "true"}, {}, "hw:mem_encryption"),
            ({"hw:mem_encryption": "false"}, {}, None),
        ):
            found = obstacle(Keys(specs, properties))
            self.assertEqual(words is None, found is None)
            self.assertIn(words or "", found or "")
