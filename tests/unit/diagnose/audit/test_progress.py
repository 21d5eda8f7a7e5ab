# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools
from nova.api.openstack import common
from nova.objects import fields
from testtools import matchers

from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import progress
from nova_perfvm.facts.snapshot import Migration
from nova_perfvm.findings import Level
from tests.unit.facts.snapshot.clouds import Cloud

# The snapshot is from midnight.
LATE, LONG_AGO = "2025-12-31T23:31:00Z", "2025-12-31T23:29:00Z"


class StuckTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        self.cloud.add_host("hp1")

    def found(self, **options):
        subject = audit.Subject(self.cloud.policy, self.cloud.snapshot(), **options)
        return list(progress.check(subject))

    def test_build_that_nobody_works_at(self):
        self.cloud.add_hp(
            "a", None, status="BUILD", task="scheduling", created=LONG_AGO, updated=LATE
        )
        self.cloud.allocate("i-a", "hp1", {"PCPU": 20})

        (finding,) = self.found()

        self.assertEqual((codes.STUCK, "a (i-a)"), (finding.code, finding.subject))
        self.assertEqual(
            "BUILD, task scheduling on no host for 31 minutes; it holds allocations "
            "of hp1",
            finding.observed,
        )
        self.assertEqual(
            "openstack server event list i-a\nopenstack server delete i-a",
            finding.remedy,
        )
        self.assertIs(Level.WARNING, finding.level)

    def test_build_that_is_young(self):
        self.cloud.add_hp("a", None, status="BUILD", created=LATE)
        self.assertEqual([], self.found())
        self.assertEqual(1, len(self.found(stuck_after_min=29)))

    def test_task_of_a_server(self):
        for task, command in (
            ("powering-off", "openstack server set --state active i-a"),
            (
                "deleting",
                "openstack server set --state error i-a\nopenstack server delete i-a",
            ),
        ):
            self.cloud.add_hp(
                "a", "hp1", task=task, created="2025-01-01T00:00:00Z", updated=LATE
            )
            self.assertEqual([], self.found())
            self.cloud.change_server("a", updated=LONG_AGO)
            (finding,) = self.found()
            look, _, remedy = finding.remedy.partition("\n")
            self.assertEqual("openstack server event list i-a", look)
            self.assertEqual(command, remedy)
            self.assertIn(f"task {task} on hp1 for 31 minutes", finding.observed)

    def test_state_is_set_only_to_what_it_was(self):
        for vm_state, statuses in common._STATE_MAP.items():
            # Those with tasks are called so whatever the state was.
            known = statuses if vm_state in {"active", "stopped"} else ["default"]
            for status in {statuses[task] for task in known}:
                self.cloud.add_hp(
                    "a",
                    "hp1",
                    status=status,
                    task="spawning",
                    created=LONG_AGO,
                    updated=LONG_AGO,
                )
                (finding,) = self.found()
                expected = {
                    "active": ["openstack server set --state active i-a"],
                    "stopped": ["openstack server set --state active i-a"],
                    "error": ["openstack server set --state error i-a"],
                    "building": ["openstack server delete i-a"],
                }.get(vm_state, [])
                self.assertEqual(expected, finding.remedy.splitlines()[1:], status)

    def test_state_that_must_not_be_set(self):
        self.cloud.add_hp(
            "a", None, status="SHELVED_OFFLOADED", task="unshelving", updated=LONG_AGO
        )
        (finding,) = self.found()
        self.assertEqual("openstack server event list i-a", finding.remedy)
        self.assertThat(
            finding.observed,
            matchers.EndsWith("; do not set its state: Nova would never unshelve it"),
        )
        self.cloud.change_server("a", task="deleting")
        (finding,) = self.found()
        self.assertNotIn("do not", finding.observed)

    def test_migration_of_a_busy_guest(self):
        self.cloud.add_hp(
            "a", "hp1", status="MIGRATING", task="migrating", updated=LONG_AGO
        )
        self.assertEqual(1, len(self.found()))
        migration = Migration("m", "i-a", "live-migration", "running")
        self.cloud.parts["migrations"] = (migration,)
        self.assertEqual([], self.found())

    def test_disk_that_is_being_copied(self):
        for task in progress.COPYING:
            with self.subTest(task):
                self.cloud.add_hp("a", "hp1", task=task, updated=LONG_AGO)
                self.assertEqual([], self.found())
        # By nobody, if the host is not at work.
        host = self.cloud.hosts["hp1"]
        self.cloud.hosts["hp1"] = dataclasses.replace(host, up=False)
        (finding,) = self.found()
        self.assertIn(f"task {task} on hp1 for 31 minutes", finding.observed)

    def test_tasks_that_copy_are_as_nova_names_them(self):
        known = {str(value) for value in fields.InstanceTaskState.ALL}
        self.assertEqual(set(), progress.COPYING - known)
        images = {task for task in known if "image_" in task}
        self.assertEqual(set(), images - progress.COPYING)

    def test_what_waits_for_its_user_or_for_nothing(self):
        self.cloud.add_hp("a", "hp1", status="VERIFY_RESIZE", updated=LONG_AGO)
        self.cloud.add_hp("b", "hp1", updated=LONG_AGO)
        # Snapshots of earlier versions do not say.
        self.cloud.add_hp("c", "hp1", task="rebuilding")
        self.assertEqual([], self.found())
