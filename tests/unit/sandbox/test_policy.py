# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import fixtures
import testtools

from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.policy import loader
from tests.processes.hostspec import parse_hosts
from tests.processes.policy import sandbox_policy


def policy_for(hosts, path=None, **how):
    return sandbox_policy(parse_hosts(hosts), path, **how)


class PolicyTest(testtools.TestCase):
    def test_built_in_policy_without_cinder(self):
        policy = policy_for("dedicated:2x20,shared:2x20")

        pinned = policy.get_class("high-performance")
        self.assertEqual(("image", None), (pinned.disk.source, pinned.disk.volume_type))
        self.assertEqual({20}, {size.root_gb for size in pinned.flavors.sizes})
        self.assertEqual("slots", policy.placement)

    def test_built_in_policy_with_cinder(self):
        policy = policy_for("dedicated:2x20", volumes=True)

        pinned, built_in = policy.pinned_classes[0], loader.load().pinned_classes[0]
        self.assertEqual("volume", pinned.disk.source)
        self.assertEqual(built_in, pinned)

    def test_what_modes_of_hosts_bring(self):
        policy = policy_for("4xelastic:2x20,1xdedicated:2x20x2,shared:2x6")
        self.assertEqual("units", policy.placement)
        self.assertEqual(["2x20", "2x20x2"], [str(s) for s in policy.host_shapes])
        mixed = policy_for("mixed:2x20").get_class("high-performance")
        self.assertEqual("cell", mixed.exclusive)
        error = self.assertRaises(DocumentError, policy_for, "dedicated:2x6")
        self.assertIn("fitted to the sandbox's hosts", str(error))

    def test_file_is_taken_as_it_is(self):
        path = Path(self.useFixture(fixtures.TempDir()).path) / "perfvm.yaml"
        path.write_text(loader.dump(loader.load()))

        policy = policy_for("elastic:2x20", str(path))

        self.assertEqual(loader.load(), policy)
