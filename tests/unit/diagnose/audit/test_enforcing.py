# SPDX-License-Identifier: Apache-2.0
"""What a policy would refuse of clouds that run; the real filter agrees elsewhere."""

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import Selection
from nova_perfvm.diagnose.audit.enforcing import refused_flavors
from nova_perfvm.findings import Level
from nova_perfvm.policy import loader
from tests.unit.diagnose.survey import clouds
from tests.unit.facts.snapshot.clouds import blind

CHECK = "Flavors go on finding hosts"
CLASSLESS = "host.classless_pinned"
ALL = loader.load()
LABELLED = dataclasses.replace(ALL, managed_hosts="labelled")


def refused(snapshot, policy=ALL):
    """Return {flavor: (reason, VMs, hosts)}."""
    found = refused_flavors(audit.Subject(policy, snapshot))
    return {r.flavor: (r.code, r.vms, r.hosts) for r in found}


class RefusedTest(testtools.TestCase):
    def test_flavors_in_use_with_their_vms(self):
        snapshot = clouds.pools().snapshot()
        self.assertEqual(
            {"db.20": (CLASSLESS, 3, 2), "db.4": (CLASSLESS, 2, 2)}, refused(snapshot)
        )
        self.assertEqual({}, refused(snapshot, LABELLED))

    def test_a_vm_is_not_in_its_own_way(self):
        cloud = clouds.PlainCloud()
        specs = clouds.PINNED | {const.CLASS_KEY: "high-performance"}
        specs |= {"hw:numa_nodes": "1", "hw:vif_multiqueue_enabled": "true"}
        cloud.add_flavor("hp", 20, 64, specs)
        cloud.add_host("h1")
        for number in range(2):
            cloud.add_pinned(f"a{number}", "h1", "hp", 20 * number, number)
        policy = dataclasses.replace(ALL, placement="none")
        self.assertEqual({}, refused(cloud.snapshot(), policy))

    def test_hosts_and_vms_that_show_little(self):
        cloud = clouds.pools()
        for name in "abcde":
            cloud.change_server(name, cells=None, pinned=None)
        snapshot = cloud.snapshot()
        self.assertEqual((CLASSLESS, 3, 2), refused(snapshot)["db.20"])
        unknown = const.CELLS_UNKNOWN, 3, 2
        self.assertEqual(unknown, refused(blind(snapshot))["db.20"])


class PreflightTest(testtools.TestCase):
    def check(self, cloud, policy):
        subject = audit.Subject(policy, cloud.snapshot())
        return dict(audit.run(subject, Selection.PREFLIGHT).results)[CHECK]

    def test_a_warning_with_its_remedy(self):
        found, _ = self.check(clouds.pools(), ALL)
        self.assertIs(Level.WARNING, found.level)
        self.assertEqual("flavor db.20", found.subject)
        words = "running VMs: 3; hosts that refuse it: 2; host.classless_pinned: "
        self.assertIn(words, found.observed)
        self.assertIn("managed_hosts: labelled", found.remedy)
        self.assertEqual((), self.check(clouds.pools(), LABELLED))
