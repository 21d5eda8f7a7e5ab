# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json

import testtools

from nova_perfvm.changes.migrations import record
from nova_perfvm.changes.migrations.execution import begin
from nova_perfvm.documents.mistakes import DocumentError
from tests.unit.changes.migrations.test_execution import COLD, MOVE


def execution():
    found = begin("digest", "room for 1 x hp", [MOVE, COLD])
    asked = dataclasses.replace(
        found.moves[0], state="asked", status="ACTIVE", after="m1", note="why"
    )
    return found.updated(0, asked)


class RecordTest(testtools.TestCase):
    def test_what_is_written_is_read(self):
        self.assertEqual(execution(), record.loads(record.dumps(execution())))

    def test_all_mistakes_are_told_with_their_places(self):
        document = json.loads(record.dumps(execution()))
        document["purpose"] = 1
        document["moves"][0]["state"] = "lost"
        del document["moves"][1]["move"]["live"]
        document["more"] = True

        error = self.assertRaises(
            DocumentError, record.loads, json.dumps(document), "x.json"
        )

        self.assertIn("x.json: 4 mistakes", str(error))
        self.assertEqual(
            {
                ("more",),
                ("moves", "0", "state"),
                ("moves", "1", "move", "live"),
                ("purpose",),
            },
            {problem.path for problem in error.mistakes},
        )

    def test_texts_that_are_none(self):
        for text, words in (("{", "no JSON"), ("[" * 10**5, "nested"), ("[]", "")):
            error = self.assertRaises(DocumentError, record.loads, text)
            self.assertIn(words, str(error))
