# SPDX-License-Identifier: Apache-2.0
"""A survey of a real Nova and Placement."""

import pathlib

import fixtures

from nova_perfvm.policy import TYPE_TO_CHOOSE, loader
from tests.embedded import FILTERS_WITHOUT_PERFVM
from tests.functional import base, client

PINNED_20 = "pinned-20"


class TestSurvey(client.ClientMixin, base.FunctionalTest):
    """Of a cloud with pinned VMs that knows nothing of the project."""

    CLOUD = None
    FLAVORS = ()
    POLICY = None

    def setUp(self):
        super().setUp()
        self.start_cloud(enabled_filters=FILTERS_WITHOUT_PERFVM)
        self.cloud.create_flavor(PINNED_20, 20, 65536, 0, base.PINNED)
        self.cloud.create_flavor("plain", 2, 4096, 0, {})
        self.cloud.start_host("pool1", dedicated="0-39")
        self.cloud.start_host("pool2", dedicated="0-39")
        self.cloud.start_host("g1", shared="0-39")
        self.boot(PINNED_20, host="pool1")
        self.boot("plain", host="g1")
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def survey(self, *options, **identity):
        """Return the exit status, {(part, what): number} and what was said."""
        status, rows, stderr = self.run_json("survey", *options, **identity)
        found = {(row["Part"], row["What"]): row["Number"] for row in rows}
        return status, found, stderr

    def test_an_administrator_sees_all(self):
        path = self.directory / "perfvm.yaml"
        asked = []
        request = client.session.Session.request

        def watched(self, url, method, *arguments, **options):
            asked.append(method)
            return request(self, url, method, *arguments, **options)

        self.useFixture(
            fixtures.MonkeyPatch("keystoneauth1.session.Session.request", watched)
        )
        status, found, said = self.survey("--policy-out", str(path))

        # There is no Glance beside this cloud.
        self.assertEqual(1, status)
        self.assertIn("not seen: images", said)
        self.assertGreater(len(asked), 10)
        self.assertEqual({"GET"}, set(asked))
        self.assertEqual(2, found["hosts", "2x20 dedicated"])
        self.assertEqual(1, found["hosts", "2x20 open"])
        self.assertEqual(1, found["pinned VMs", "20 vCPUs"])
        slots = [found["slots", what] for what in ("used", "free", "unfit", "possible")]
        self.assertEqual([1, 3, 0, 2], slots)
        self.assertIn(("findings", "audit.no_multiqueue"), found)
        # No VM here has a volume, and no Cinder tells types: the operator chooses.
        path.write_text(path.read_text().replace(TYPE_TO_CHOOSE, "nvme-tcp"))
        policy = loader.load(path)
        (vm_class,) = policy.pinned_classes
        self.assertEqual(20, vm_class.vcpus)
        self.assertEqual("labelled", policy.managed_hosts)
        self.assertEqual(
            0, self.run_command("policy", "show", "--policy", str(path))[0]
        )
