# SPDX-License-Identifier: Apache-2.0
"""Computes count anew each minute, which the in-process cloud leaves out."""

import fixtures

from nova_perfvm.cloud import migrate


class MinutesPass(fixtures.Fixture):
    """Whoever waits for a compute to count anew finds that it has, the next time.

    :ivar waits: how often a compute counted too much
    """

    def __init__(self, cloud):
        super().__init__()
        self._cloud = cloud
        self.waits = 0

    def _setUp(self):  # noqa: N802
        look = migrate._Run._overcounted

        def looked(run, move):
            found = look(run, move)
            if found:
                self.waits += 1
                self._cloud.run_periodics()
            return found

        patch = fixtures.MonkeyPatch(f"{migrate.__name__}._LONGEST_PAUSE_S", 0.2)
        self.useFixture(patch)
        self.useFixture(fixtures.MockPatchObject(migrate._Run, "_overcounted", looked))
