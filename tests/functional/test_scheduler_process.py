# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import subprocess
import sys

import fixtures
import testtools


class NovaSchedulerTest(testtools.TestCase):
    """The real nova-scheduler process."""

    def test_it_does_not_start_with_a_bad_policy(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (folder / "perfvm.yaml").write_text("placement: slot\nmanaged_hosts: nine\n")
        (folder / "nova.conf").write_text(
            "[DEFAULT]\n"
            "transport_url = fake://\n"
            f"state_path = {folder}\n"
            "[api_database]\n"
            f"connection = sqlite:///{folder}/api.db\n"
            "[oslo_concurrency]\n"
            f"lock_path = {folder}\n"
            "[filter_scheduler]\n"
            "available_filters = nova.scheduler.filters.all_filters\n"
            "available_filters = nova_perfvm.scheduler.filters.all_filters\n"
            "enabled_filters = ComputeFilter,PerfVMFilter,NUMATopologyFilter\n"
            "[perfvm]\n"
            f"policy_file = {folder}/perfvm.yaml\n"
        )
        environment = {
            name: value
            for name, value in os.environ.items()
            if name != "OS_NOVA_DISABLE_EVENTLET_PATCHING"
        }
        programs = pathlib.Path(sys.executable).parent
        for command in (["nova-manage", "api_db", "sync"], ["nova-scheduler"]):
            result = subprocess.run(
                [
                    programs / command[0],
                    "--config-file",
                    folder / "nova.conf",
                    *command[1:],
                ],
                check=False,
                capture_output=True,
                text=True,
                env=environment,
            )
        self.assertEqual(1, result.returncode)
        self.assertIn("3 mistakes in the policy", result.stderr)
        for words in ("schema_version: missing", "found 'slot'", "found 'nine'"):
            self.assertIn(words, result.stderr)
        self.assertNotIn("Traceback", result.stderr)
