# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import subprocess
import sys

import testtools

import nova_perfvm

# What each layer keeps out, so that a laptop, the scheduler and the client
# each load only what they have.
PURE = (
    "constants",
    "exceptions",
    "cpuset",
    "model",
    "facts",
    "rules",
    "flavors",
    "loader",
    "elastic",
    "reconcile",
    "hostconfig",
    "reconcile",
    "snapshot",
    "inventory",
    "audit",
    "explain",
    "capacity",
)
PURE_STDLIB = ("model", "facts", "rules", "snapshot", "reconcile", "audit", "explain")
HEAVY = ("nova", "eventlet", "openstack", "osc_lib")


def loaded_by(modules, watched):
    """Give which of the watched packages a fresh process has after imports."""
    code = (
        f"import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print(*[name for name in {watched!r} if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    return result.stdout.split()


class ImportsTest(testtools.TestCase):
    def test_pure_modules_load_no_openstack(self):
        for module in PURE:
            with self.subTest(module):
                self.assertEqual([], loaded_by([f"nova_perfvm.{module}"], HEAVY))

    def test_model_facts_and_rules_load_nothing_but_the_standard_library(self):
        modules = [f"nova_perfvm.{name}" for name in PURE_STDLIB]
        self.assertEqual([], loaded_by(modules, ("yaml", "jsonschema", "oslo_config")))

    def test_options_load_no_nova(self):
        self.assertEqual([], loaded_by(["nova_perfvm.conf"], ("nova", "openstack")))

    def test_scheduler_loads_no_client(self):
        self.assertEqual(
            [], loaded_by(["nova_perfvm.scheduler.filters"], ("osc_lib", "cliff"))
        )

    def test_scheduler_runs_where_nova_forbids_eventlet(self):
        """As nova-scheduler starts: there, importing eventlet raises."""
        code = (
            "from nova import monkey_patch\n"
            "monkey_patch.patch(backend='threading')\n"
            "import sys, nova_perfvm.scheduler.filters\n"
            "sys.exit('eventlet' in sys.modules)"
        )
        environment = os.environ | {"OS_NOVA_DISABLE_EVENTLET_PATCHING": "1"}
        result = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            env=environment,
            check=False,
            text=True,
        )
        self.assertEqual((0, ""), (result.returncode, result.stderr[-500:]))

    def test_watching_finds_what_is_loaded(self):
        self.assertEqual(["yaml"], loaded_by(["nova_perfvm.loader"], ("yaml", "nova")))


class NamesTest(testtools.TestCase):
    def test_no_module_for_what_has_no_name(self):
        root = pathlib.Path(nova_perfvm.__file__).parent
        names = {path.stem for path in root.rglob("*")}
        self.assertEqual(set(), names & {"utils", "helpers", "manager", "misc"})
