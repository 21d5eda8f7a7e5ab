# SPDX-License-Identifier: Apache-2.0

import importlib.util
import pathlib
import subprocess
import sys

import testtools

from tests import nova_differences as differences

# As the in-process cloud starts: is time.sleep that of eventlet's threads?
CHOOSE = """
import os
from tests import nova_differences as differences
differences.choose_threads()
import time
print(os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"], time.sleep.__module__)
"""


class ReleasesTest(testtools.TestCase):
    def test_native_threads_are_for_fixtures_with_databases_in_files(self):
        spec = importlib.util.find_spec("nova.tests.fixtures")
        (folder,) = spec.submodule_search_locations
        fixtures = (pathlib.Path(folder) / "nova.py").read_text(encoding="utf-8")
        self.assertEqual(
            "_use_file_backed_sqlite" in fixtures,
            differences.tests_in_native_threads(),
        )

    def test_threads_are_chosen_before_nova_is_imported(self):
        ran = subprocess.run(
            [sys.executable, "-c", CHOOSE], check=False, capture_output=True, text=True
        )
        expected = (
            "1 time"
            if differences.tests_in_native_threads()
            else "0 eventlet.greenthread"
        )
        self.assertEqual(expected, ran.stdout.strip(), ran.stderr)

    def test_the_pin_check_is_where_nova_has_it(self):
        owner = differences.pin_check_owner()
        self.assertTrue(callable(getattr(owner, differences.PIN_CHECK)))
