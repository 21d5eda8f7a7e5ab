# SPDX-License-Identifier: Apache-2.0

import json
import signal

from tests.processes import waiting
from tests.sandbox import base
from tests.sandbox.proofs import HOST, ProofCase


class ResumedTest(ProofCase):
    def test_a_proof_that_is_gone_on_with(self):
        measured = self.output.with_name("proof.json.run")
        process = self.start(*self.words_of(), "--host", HOST, "--keep")
        self.stand_in_for_vms(process)
        waiting.until(
            lambda: (
                measured.exists() and json.loads(measured.read_text())["run"]["steps"]
            ),
            "a step",
            base.SECONDS,
        )
        process.send_signal(signal.SIGINT)
        found, _, stderr = self.ended(process)
        self.assertEqual(130, found, stderr)
        self.assertIn("kept: server perfvm-proof-", stderr)
        (step, *_) = json.loads(measured.read_text())["run"]["steps"]
        servers = sorted(self.names())

        again = self.start(*self.words_of(), "--resume", "--servers", *servers)
        self.assert_judged(again)
        record = json.loads(self.output.read_text())
        steps = record["measured"]["run"]["steps"]
        self.assertEqual(step, steps[0])
        self.assertEqual(len(steps), len({one["key"] for one in steps}))
        self.assertEqual(servers, sorted(self.names()))
