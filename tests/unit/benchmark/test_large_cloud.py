# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

from nova_perfvm.facts import snapshot
from tests.benchmark import large_cloud
from tests.directory import DirectoryCase


class LargeCloudTest(DirectoryCase):
    def test_each_command_judges_the_cloud(self):
        directory = Path(self.directory)
        path = directory / "snapshot.json"
        large_cloud.prepare(path, 9)
        self.assertEqual(9, len(snapshot.load(str(path)).hosts))
        for command in large_cloud.COMMANDS:
            _, _, status = large_cloud.measured(command, path, directory)
            # 3 says that it could not.
            self.assertIn(status, {0, 1, 2}, (directory / "output").read_text())
