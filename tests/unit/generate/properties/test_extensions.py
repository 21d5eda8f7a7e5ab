# SPDX-License-Identifier: Apache-2.0

import sys
from pathlib import Path

import fixtures
import testtools
from stevedore import _cache

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.generate import flavors
from nova_perfvm.generate.properties import BUILT_IN, PropertiesError, extensions
from nova_perfvm.policy import loader

POLICY = loader.load()
HIGH = POLICY.get_class("high-performance")

SOURCE = """\
from nova_perfvm.generate.properties import Properties

def sockets(policy, vm_class):
    return Properties(flavor={"hw:cpu_max_sockets": "1"} if vm_class.pinned else {})
"""


class ExtensionsTest(testtools.TestCase):
    def install(self, target):
        """Install a package, as pip would, that registers ``acme = target``."""
        root = Path(self.useFixture(fixtures.TempDir()).path)
        (root / "acme_perfvm.py").write_text(SOURCE, encoding="utf-8")
        info = root / "acme_perfvm-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: acme-perfvm\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            f"[{extensions.NAMESPACE}]\nacme = {target}\n"
        )
        self.useFixture(fixtures.MonkeyPatch("sys.path", [str(root), *sys.path]))
        self.addCleanup(sys.modules.pop, "acme_perfvm", None)
        # A fresh process has no entry points in memory; the cache on disk is
        # keyed by the path.
        self.useFixture(fixtures.MonkeyPatch("stevedore._cache._c", _cache.Cache()))
        cache = self.useFixture(fixtures.TempDir()).path
        self.useFixture(fixtures.EnvironmentVariable("XDG_CACHE_HOME", cache))
        self.useFixture(
            fixtures.MonkeyPatch(
                "stevedore.extension.ExtensionManager.ENTRY_POINT_CACHE", {}
            )
        )

    def test_an_operators_package_adds_one(self):
        before = flavors.properties_of(POLICY, HIGH).flavor
        self.install("acme_perfvm:sockets")
        loaded = extensions.load_generators()
        for name, generate in BUILT_IN.items():
            label = f"{name} (nova_perfvm.generate.properties.built_in:{name})"
            self.assertIs(generate, loaded[label])
        found = flavors.properties_of(POLICY, HIGH).flavor
        added = {"hw:cpu_max_sockets": "1"}
        self.assertEqual(found, before | added)

    def test_one_that_cannot_be_loaded(self):
        for target, words in (
            ("acme_perfvm:absent", "AttributeError"),
            ("acme_nowhere:x", "No module named 'acme_nowhere'"),
        ):
            self.install(target)
            error = self.assertRaises(PropertiesError, extensions.load_generators)
            self.assertIn(f"acme ({target})", str(error))
            self.assertIn(words, str(error))
            self.assertIn("uninstall", str(error))

    def test_without_entry_points_nothing_is_generated(self):
        self.useFixture(
            fixtures.MonkeyPatch(f"{extensions.__name__}.NAMESPACE", "nobody.is_here")
        )
        error = self.assertRaises(PerfVMError, extensions.load_generators)
        self.assertIn("cpu, disk, memory, network of", str(error))
        self.assertIn("install nova-perfvm again", str(error))
