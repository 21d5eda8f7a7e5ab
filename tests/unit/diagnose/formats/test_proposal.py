# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.diagnose.formats import proposal
from nova_perfvm.diagnose.survey import propose
from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.policy import loader
from tests.unit.diagnose.survey import clouds


class FileTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.found = propose(clouds.pools().snapshot())

    def test_it_is_the_policy_that_was_proposed(self):
        text = proposal.as_file(self.found)
        self.assertEqual(self.found.policy, loader.parse(text))
        self.assertTrue(all(len(line) < 90 for line in text.splitlines()))

    def test_no_line_of_a_comment_is_anything_else(self):
        why = {"vcpus": "x\nplacement: none\r\u2028" + "word " * 40}
        text = proposal.as_file(dataclasses.replace(self.found, why=why))
        self.assertEqual(self.found.policy, loader.parse(text))

    def test_one_that_is_none_is_no_file(self):
        policy = dataclasses.replace(self.found.policy, classes=())
        broken = dataclasses.replace(self.found, policy=policy)
        self.assertRaises(DocumentError, proposal.as_file, broken)
