# SPDX-License-Identifier: Apache-2.0


import testtools
from oslo_messaging import exceptions

from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import builds
from tests.unit.facts.snapshot.clouds import Cloud

NO_ANSWER = exceptions.MessagingTimeout.__name__


class CutOffTest(testtools.TestCase):
    def found(self, host=None, **server):
        cloud = Cloud()
        cloud.add_host("hp1")
        cloud.add_hp("a", host, **server)
        return list(builds.check(audit.Subject(cloud.policy, cloud.snapshot())))

    def test_an_answer_that_did_not_come(self):
        (finding,) = self.found(status="ERROR", fault=NO_ANSWER)
        self.assertEqual(codes.BUILD_CUT_OFF, finding.code)
        self.assertEqual("a (i-a)", finding.subject)
        self.assertIn("in ERROR by MessagingTimeout and on no host", finding.observed)
        self.assertIn("openstack server delete i-a", finding.remedy)

    def test_other_ends(self):
        self.assertEqual([], self.found(status="ERROR", fault="No valid host"))
        self.assertEqual([], self.found(status="BUILD", fault=NO_ANSWER))
        # Nova knows where that guest is.
        self.assertEqual([], self.found("hp1", status="ERROR", fault=NO_ANSWER))
