# SPDX-License-Identifier: Apache-2.0
"""Fixes that the source of Nova shows, on the installed one and on made-up ones."""

import importlib.metadata
import pathlib
from importlib import resources

import fixtures
import testtools

from nova_perfvm.known_bugs import Release, all_bugs
from nova_perfvm.scheduler import nova_fixes

WITH_FIXES = {
    "compute/claims.py": "            pci_stats = self.tracker.pci_tracker.stats\n",
    "compute/api.py": "if not k.startswith('_nova')}\n",
    "virt/libvirt/migration.py": "        if iothreadpin is not None:\n",
    "conductor/tasks/live_migrate.py": "        self.limits = selection.limits\n",
}
WITHOUT = {
    "compute/claims.py": """\
            pci_stats = None
            if pci_requests.requests:
                pci_stats = self.tracker.pci_tracker.stats
""",
    "compute/api.py": "",
    "virt/libvirt/migration.py": "        iothreadpin.set('cpuset',\n",
    "conductor/tasks/live_migrate.py": "return (host, node, selection.limits)\n",
}


class Source(fixtures.Fixture):
    """The source of a Nova that has some fixes."""

    def __init__(self, files):
        super().__init__()
        self._files = files

    def _setUp(self):  # noqa: N802
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name, text in self._files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        files = resources.files
        self.useFixture(
            fixtures.MonkeyPatch(
                "importlib.resources.files",
                lambda package: root if package == "nova" else files(package),
            )
        )
        nova_fixes.has_fix.cache_clear()
        self.addCleanup(nova_fixes.has_fix.cache_clear)


class NovaFixesTest(testtools.TestCase):
    def seen(self):
        return {number: nova_fixes.has_fix(number) for number in nova_fixes._FIXES}

    def test_the_installed_release(self):
        """The source says the same as the number."""
        release = Release.parse(importlib.metadata.version("nova"))
        bugs = {bug.number: bug for bug in all_bugs()}
        for number, shown in self.seen().items():
            bug = bugs[number]
            if bug.since is None or release >= bug.since:
                self.assertEqual(release.has_fix(bug.fixed), shown, number)
        self.assertIsNone(nova_fixes.has_fix(1811886))

    def test_what_the_source_shows(self):
        for files, expected in ((WITH_FIXES, True), (WITHOUT, False), ({}, None)):
            with Source(files):
                self.assertEqual({expected}, set(self.seen().values()))
