# SPDX-License-Identifier: Apache-2.0

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

from tests import documented, shown

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
CONF = """
[DEFAULT]
transport_url = fake://
state_path = {folder}
# Nova 33 waits so long, whatever is left to do.
manager_shutdown_timeout = 1
[api_database]
connection = sqlite:///{folder}/api.db
[database]
connection = sqlite:///{folder}/main.db
[oslo_concurrency]
lock_path = {folder}
[placement]
auth_type = none
# Nobody is there, and nothing asks.
endpoint_override = http://127.0.0.1:9
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = nova_perfvm.scheduler.filters.all_filters
enabled_filters = PerfVMFilter,PerfVMNUMATopologyFilter
track_instance_changes = False
[scheduler]
workers = 1
"""
LIMIT_S = 180


class NovaSchedulerTest(testtools.TestCase):
    """The real nova-scheduler process."""

    def setUp(self):
        super().setUp()
        self.useFixture(
            fixtures.EnvironmentVariable("OS_NOVA_DISABLE_EVENTLET_PATCHING")
        )
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.conf = self.folder / "nova.conf"
        self.conf.write_text(CONF.format(folder=self.folder))

    def test_it_does_not_start_with_a_bad_policy(self):
        path = self.folder / "perfvm.yaml"
        path.write_text("placement: slot\nmanaged_hosts: nine\n")
        with self.conf.open("a") as file:
            file.write(f"[perfvm]\npolicy_file = {path}\n")
        programs = pathlib.Path(sys.executable).parent
        for program, *arguments in (
            ("nova-manage", "api_db", "sync"),
            ("nova-scheduler",),
        ):
            result = subprocess.run(
                [programs / program, "--config-file", self.conf, *arguments],
                check=False,
                capture_output=True,
                text=True,
            )
        self.assertEqual(1, result.returncode)
        self.assertIn("3 mistakes", result.stderr)
        for words in ("schema_version: missing", "found 'slot'", "found 'nine'"):
            self.assertIn(words, result.stderr)
        self.assertNotIn("Traceback", result.stderr)

    def test_sighup_turns_the_filter_off_and_on(self):
        for name, models in (("api", api_models), ("main", main_models)):
            engine = sqlalchemy.create_engine(f"sqlite:///{self.folder}/{name}.db")
            models.BASE.metadata.create_all(engine)
            engine.dispose()
        self.log = self.folder / "log"
        self.seen = 0
        with self.log.open("w") as log:
            scheduler = subprocess.Popen(
                [sys.executable, "-c", JUDGING, "--config-file", self.conf],
                stdout=log,
                stderr=subprocess.STDOUT,
                # It sends SIGHUP to its whole group.
                start_new_session=True,
            )
        self.addCleanup(scheduler.wait)
        self.addCleanup(scheduler.terminate)
        self.addOnException(
            lambda _: self.addDetail(
                "nova-scheduler", text_content(self.log.read_text())
            )
        )
        self.wait_for("PerfVMFilter judges by", "mode enforce")
        self.wait_for("PerfVMFilter rejected")
        commands = documented.of(self)
        page = (shown.ROOT / "doc/source/admin/turn-off.rst").read_text()
        for command, change, says in zip(
            commands,
            ("[None] to [observe]", "[observe] to [enforce]"),
            ("would reject", "rejected"),
            strict=True,
        ):
            self.seen = self.log.stat().st_size
            typed = command.text.replace("/etc/nova/nova.conf", str(self.conf))
            subprocess.run(["sh", "-c", typed], check=True)
            scheduler.send_signal(signal.SIGHUP)
            self.wait_for(f"Option perfvm.mode changed from {change}")
            self.wait_for(f"PerfVMFilter {says}")
        self.assertIn("Option perfvm.mode changed from [None] to [observe]", page)

    def wait_for(self, *words):
        """Wait for a line that was not there when nova.conf was changed."""
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until:
            lines = self.log.read_bytes()[self.seen :].decode().splitlines()
            if any(all(word in line for word in words) for line in lines):
                return
            time.sleep(0.1)
        self.fail(f"nova-scheduler did not say {words}")
