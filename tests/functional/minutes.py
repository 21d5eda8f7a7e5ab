# SPDX-License-Identifier: Apache-2.0
"""What computes do each few minutes, which the in-process cloud leaves out."""

import time

import fixtures

from nova_perfvm.cloud import apply, migrate

# How often nova-compute reads the tree of its host again.
REFRESH = "resource_provider_association_refresh"


class MinutesPass(fixtures.Fixture):
    """Whoever waits for a compute to count anew finds that it has, the next time.

    :ivar waits: how often a compute counted too much
    """

    def __init__(self, cloud):
        super().__init__()
        self._cloud = cloud
        self.waits = 0

    def _setUp(self):  # noqa: N802
        look = migrate.MigrationRun._overcounted

        def looked(run, move):
            found = look(run, move)
            if found:
                self.waits += 1
                self._cloud.run_periodics()
            return found

        patch = fixtures.MonkeyPatch(f"{migrate.__name__}._LONGEST_PAUSE_S", 0.2)
        self.useFixture(patch)
        self.useFixture(
            fixtures.MockPatchObject(migrate.MigrationRun, "_overcounted", looked)
        )


class TreesAreReadAgain(fixtures.Fixture):
    """Six minutes are over, and computes read the trees of their hosts again."""

    def _setUp(self):  # noqa: N802
        # Nova must not be imported before the embedded cloud has prepared it.
        from nova import conf

        conf.CONF.set_override(REFRESH, 1, "compute")
        self.addCleanup(conf.CONF.clear_override, REFRESH, "compute")
        self.useFixture(fixtures.MockPatchObject(apply, "FORGOTTEN_S", 2))
        time.sleep(2.5)
