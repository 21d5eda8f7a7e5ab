# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import signal
import subprocess
import sys
import time

import fixtures
import sqlalchemy
import testtools
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from testtools.content import text_content

from tests import documented

# The program itself.  Its workers get no requests here, so each asks its filter, again
# and again, for a server that no policy lets pass.
JUDGING = """
import threading, time
from nova.cmd import scheduler
from nova import service
from tests.unit.scheduler import states

start = service.Service.start

def judge(chosen):
    spec, host = states.request_spec(vcpus=16), states.host_state()
    while True:
        chosen.filter_all([host], spec)
        time.sleep(0.2)

def start_judging(this):
    start(this)
    for chosen in this.manager.host_manager.enabled_filters:
        if type(chosen).__name__ == "PerfVMFilter":
            threading.Thread(target=judge, args=(chosen,), daemon=True).start()

service.Service.start = start_judging
scheduler.main()
"""
LIMIT_S = 180


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
        self.assertIn("3 mistakes", result.stderr)
        for words in ("schema_version: missing", "found 'slot'", "found 'nine'"):
            self.assertIn(words, result.stderr)
        self.assertNotIn("Traceback", result.stderr)

    def test_sighup_turns_the_filter_off_and_on(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name, models in (("api", api_models), ("main", main_models)):
            engine = sqlalchemy.create_engine(f"sqlite:///{folder}/{name}.db")
            models.BASE.metadata.create_all(engine)
            engine.dispose()
        self.conf = folder / "nova.conf"
        self.log = folder / "log"
        self.write(folder)
        self.seen = 0
        with self.log.open("w") as log:
            scheduler = subprocess.Popen(
                [sys.executable, "-c", JUDGING, "--config-file", self.conf],
                stdout=log,
                stderr=subprocess.STDOUT,
                # It sends SIGHUP to its whole group.
                start_new_session=True,
                env={
                    name: value
                    for name, value in os.environ.items()
                    if name != "OS_NOVA_DISABLE_EVENTLET_PATCHING"
                },
            )
        self.addCleanup(scheduler.wait)
        self.addCleanup(scheduler.terminate)
        self.addOnException(
            lambda _: self.addDetail(
                "nova-scheduler", text_content(self.log.read_text())
            )
        )
        self.wait_for("PerfVMFilter judges all hosts", "mode is enforce")
        self.wait_for("PerfVMFilter rejected")
        commands = documented.of(self)
        for command, mode, says in zip(
            commands,
            ("observe", "enforce"),
            ("would reject", "rejected"),
            strict=True,
        ):
            self.seen = self.log.stat().st_size
            typed = command.text.replace("/etc/nova/nova.conf", str(self.conf))
            subprocess.run(["sh", "-c", typed], check=True)
            scheduler.send_signal(signal.SIGHUP)
            self.wait_for("Option perfvm.mode changed from ", f"to [{mode}]")
            self.wait_for(f"PerfVMFilter {says}")

    def write(self, folder):
        self.conf.write_text(
            "[DEFAULT]\n"
            "transport_url = fake://\n"
            f"state_path = {folder}\n"
            "[api_database]\n"
            f"connection = sqlite:///{folder}/api.db\n"
            "[database]\n"
            f"connection = sqlite:///{folder}/main.db\n"
            "[oslo_concurrency]\n"
            f"lock_path = {folder}\n"
            "[placement]\n"
            "auth_type = none\n"
            # Nobody is there, and nothing asks.
            "endpoint_override = http://127.0.0.1:9\n"
            "[filter_scheduler]\n"
            "available_filters = nova.scheduler.filters.all_filters\n"
            "available_filters = nova_perfvm.scheduler.filters.all_filters\n"
            "enabled_filters = PerfVMFilter,PerfVMNUMATopologyFilter\n"
            "track_instance_changes = False\n"
            "[scheduler]\n"
            "workers = 1\n"
        )

    def wait_for(self, *words):
        """Wait for a line that was not there when nova.conf was changed."""
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until:
            lines = self.log.read_bytes()[self.seen :].decode().splitlines()
            if any(all(word in line for word in words) for line in lines):
                return
            time.sleep(0.1)
        self.fail(f"nova-scheduler did not say {words}")
