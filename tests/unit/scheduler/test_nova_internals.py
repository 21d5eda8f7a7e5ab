# SPDX-License-Identifier: Apache-2.0

import importlib.metadata
import importlib.util
import pathlib
import re

import fixtures
import testtools

import nova_perfvm
from nova_perfvm.scheduler import nova_internals, numa_filter

RELEASE = int(importlib.metadata.version("nova").partition(".")[0])
PACKAGE = pathlib.Path(nova_perfvm.__file__).parent


class InternalsTest(testtools.TestCase):
    def test_each_is_the_one_of_this_release(self):
        """Where Nova has changed one, read what rests on it before the hash changes."""
        for name, internal in nova_internals.internals().items():
            found = nova_internals.source_hash(nova_internals._named(name))
            self.assertEqual(internal.hashes.get(RELEASE), found)

    def test_each_reason_names_modules(self):
        for internal in nova_internals.internals().values():
            module, *others = re.findall(r"[\w/]+\.py", internal.why)
            folder = (PACKAGE / module).parent
            for path in (PACKAGE / module, *(folder / each for each in others)):
                self.assertTrue(path.exists(), path)

    def test_another_source_is_unknown(self):
        another = numa_filter.NUMATopologyOfOneRequest.host_passes
        self.assertFalse(nova_internals.is_known(numa_filter.REPLACED, another))
        self.assertFalse(nova_internals.is_known(numa_filter.REPLACED, len))
        self.assertEqual([], list(nova_internals.unknown()))

    def test_comments_and_layout_do_not_count(self):
        hashes = set()
        for source in ("x = [1,2]\n", "# Two numbers.\nx = [\n    1, 2\n]\n"):
            path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "found.py")
            path.write_text(source)
            spec = importlib.util.spec_from_file_location("found", path)
            found = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(found)
            hashes.add(nova_internals.source_hash(found))
        self.assertEqual(1, len(hashes))
        self.assertNotIn(None, hashes)
