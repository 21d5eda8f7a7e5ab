# SPDX-License-Identifier: Apache-2.0
"""What tests of checks of hosts share."""

import dataclasses

import testtools

from nova_perfvm.facts.hypervisor import of_host
from nova_perfvm.findings import Level
from nova_perfvm.measure.checks import host as package
from nova_perfvm.measure.checks.check import checks_of
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.policy import HostShape, loader
from tests.unit.measure import hosts
from tests.unit.measure.hosts import UUIDS

POLICY = dataclasses.replace(loader.load(), host_shapes=(HostShape(2, 21),))
CHECKS = {check.code: check for check in checks_of(package)}
PASS, SKIP, WARN, FAIL = Level.OK, Level.UNKNOWN, Level.WARNING, Level.FAILURE
NOTE = Level.NOTE

CONF = "/etc/nova/nova.conf"
FIRST = "instance-00000001"
PID = hosts.FIRST_PID + 100
PROC = f"/proc/{PID}"
SCOPE = "/sys/fs/cgroup/machine.slice/machine-qemu\\x2d1.scope/libvirt"
XML = f"virsh -r dumpxml {UUIDS[0]}"


def with_class(**changes):
    """Return the policy with another class of pinned VMs."""
    classes = [
        dataclasses.replace(c, **changes) if c.name == "high-performance" else c
        for c in POLICY.classes
    ]
    return dataclasses.replace(POLICY, classes=tuple(classes))


def having(collected, files=None, **rest):
    """Return it with some files exchanged; those that are None are left out."""
    merged = {**collected.files, **(files or {})}
    kept = {path: text for path, text in merged.items() if text is not None}
    return dataclasses.replace(collected, files=kept, **rest)


def changed(change):
    """Return a host that differs in this from one without a fault."""
    if isinstance(change, dict):
        return having(hosts.roomy(), change)
    if isinstance(change, tuple):
        return hosts.edited(hosts.roomy(), 1, change)
    return change


def view(snapshot=None):
    return of_host(snapshot or hosts.snapshot(), "compute1")


def findings(code, collected, policy=POLICY, nova=None):
    return CHECKS[code].findings(HostSubject(collected, policy, nova))


class HostCase(testtools.TestCase):
    def assert_cases(self, code, *cases, policy=POLICY, nova=None):
        """Look at cases of a check.

        A case is a status, of whom it is told ("*": nothing else is told of anybody),
        a word in it, and what differs from a host without a fault: files, texts of the
        first VM's XML (old and new), or another host.
        """
        for status, subject, word, change in cases:
            found = findings(f"hypervisor.{code}", changed(change), policy, nova)
            levels = {one.level for one in found if subject in {"*", one.subject}}
            worse = max(levels, default=None)
            expected = {status} if subject == "*" else {status, max(status, SKIP)}
            self.assertIn(worse, expected, (subject, found))
            told = [one for one in found if one.level is status]
            words = " ".join(f"{one.subject} {one.observed}" for one in told)
            self.assertIn(word, words)
            for one in told:
                if status in {WARN, FAIL}:
                    self.assertTrue(one.remedy and one.expected, one)
