# SPDX-License-Identifier: Apache-2.0
"""What the audit sees in a real cloud in which much is wrong."""

import contextlib
import json
import re

from nova_perfvm import findings as codes
from nova_perfvm.policy import loader
from tests.sandbox import base, looking
from tests.sandbox.base import GENERAL, HP
from tests.sandbox.violations import Violations


class LookTest(looking.LookingMixin, base.SandboxTest):
    HOSTS = "3xdedicated:2x20,3xshared:2x20"

    @contextlib.contextmanager
    def without_filter(self):
        """Let the schedulers run as before this project came."""
        path = self.sandbox.layout.etc / "nova" / "nova-scheduler-1.conf"
        kept = path.read_text()
        generated = (path.parent / "scheduler.conf").read_text()
        (filters,) = re.findall("^enabled_filters = (.*)$", generated, re.MULTILINE)
        others = filters.replace("PerfVMFilter,", "")
        path.write_text(f"{kept}\n[filter_scheduler]\nenabled_filters = {others}\n")
        self.sandbox.stop("nova-scheduler-2")
        self.restart("nova-scheduler-1")
        try:
            yield
        finally:
            path.write_text(kept)
            self.restart("nova-scheduler-1")
            self.restart("nova-scheduler-2", stop=False)

    def restart(self, name, *, stop=True):
        if stop:
            self.sandbox.stop(name)
        self.sandbox.start(name)
        self.await_report("nova-scheduler", name)

    def test_planted_violations(self):
        high = self.boot(HP, host="dedicated3")
        general = self.boot(GENERAL, host="shared2")
        violations = Violations(self)
        self.addCleanup(violations.undo)
        status, found, said = self.audit()
        self.assertEqual((0, []), (status, found))
        self.assertIn(" checks on 6 host(s) and 2 server(s)", said)

        violations.plant(high, general)

        status, found, _ = self.audit()
        found = {(row["Code"], row["Subject"]) for row in found}
        self.assertEqual((2, set()), (status, violations.expected - found))
        base.tell(f"{len(found)} findings, {len({code for code, _ in found})} codes")
        self.other_files(high)

        self.delete_all()
        violations.undo()
        self.assertEqual((0, []), self.audit()[:2])

    def other_files(self, high):
        """Audit with another policy, without placement.conf and Glance."""
        document = loader.load(self.sandbox.layout.policy).as_document()
        document["managed_hosts"] = "labelled"
        path = self.sandbox.layout.directory / "labelled.yaml"
        path.write_text(json.dumps(document))
        self.sandbox.kill("glance")
        try:
            _, found, _ = self.look("audit", "--policy", str(path))
        finally:
            self.sandbox.start("glance")
        found = {(row["Code"], row["Subject"]) for row in found}
        expected = {
            ("audit.host_not_managed", f"{high['name']} ({high['id']})"),
            (codes.RETRY_COUNT_UNKNOWN, "placement.conf"),
            (codes.NOT_SEEN, "images"),
        }
        self.assertEqual(set(), expected - found)
