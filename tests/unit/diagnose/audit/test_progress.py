# SPDX-License-Identifier: Apache-2.0

import dataclasses
from unittest import mock

import fixtures
import testtools
from nova import context, objects
from nova.api.openstack import common
from nova.conductor import manager
from nova.objects import fields
from oslo_messaging import exceptions
from oslo_utils.fixture import uuidsentinel

from nova_perfvm import findings as codes
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.audit import progress
from nova_perfvm.facts.migration_states import UNFINISHED
from nova_perfvm.facts.snapshot import Migration
from tests.unit.facts.snapshot.clouds import Cloud

# The snapshot is from midnight.
LATE, LONG_AGO = "2025-12-31T23:31:00Z", "2025-12-31T23:29:00Z"
NO_ANSWER = exceptions.MessagingTimeout.__name__
DELETE = "openstack server delete i-a"


def state(name):
    return f"openstack server set --state {name} i-a"


class ProgressCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        self.cloud.add_host("hp1")

    def found(self, host, check=progress.check, minutes=30, **server):
        """Return what is found of one server, that was touched long ago."""
        times = {"created": LONG_AGO, "updated": LONG_AGO}
        self.cloud.add_hp("a", host, **times | server)
        subject = audit.Subject(self.cloud.policy, self.cloud.snapshot())
        return list(check(dataclasses.replace(subject, stuck_after_min=minutes)))

    def assert_remedy(self, expected, host, words="", **server):
        (finding,) = self.found(host, **server)
        self.assertEqual((codes.STUCK, "a (i-a)"), (finding.code, finding.subject))
        self.assertIn(words, finding.observed)
        look, *commands = finding.remedy.splitlines()
        self.assertEqual("openstack server event list i-a", look)
        self.assertEqual(expected, commands, server)


class StuckTest(ProgressCase):
    def test_what_frees_a_server(self):
        words = "BUILD, task scheduling on no host for 31 minutes"
        self.assert_remedy([DELETE], None, words, status="BUILD", task="scheduling")
        for task, expected in (
            ("powering-off", [state("active")]),
            ("deleting", [state("error"), DELETE]),
        ):
            self.assert_remedy(expected, "hp1", f"task {task} on hp1", task=task)

    def test_state_is_set_only_to_what_it_was(self):
        for vm_state, statuses in common._STATE_MAP.items():
            # Those with tasks are called so whatever the state was.
            known = statuses if vm_state in {"active", "stopped"} else ["default"]
            for status in {statuses[task] for task in known}:
                expected = {
                    "active": [state("active")],
                    "stopped": [state("active")],
                    "error": [state("error")],
                    "building": [DELETE],
                }.get(vm_state, [])
                self.assert_remedy(expected, "hp1", status=status, task="spawning")

    def test_what_is_young_or_waits_or_copies(self):
        """Guests that are busy, and disks, take hours to copy."""
        for server in (
            {"status": "BUILD", "created": LATE},
            {"task": "powering-off", "updated": LATE},
            {"status": "VERIFY_RESIZE"},
            {},
            # Snapshots of earlier versions do not say.
            {"task": "rebuilding", "updated": ""},
            {"task": "image_uploading"},
            {"task": "resize_migrating"},
        ):
            self.assertEqual([], self.found("hp1", **server), server)
        late = {"status": "BUILD", "created": LATE}
        self.assertEqual(1, len(self.found("hp1", minutes=29, **late)))
        # By nobody, if the host is not at work.
        host = self.cloud.hosts["hp1"]
        self.cloud.hosts["hp1"] = dataclasses.replace(host, up=False)
        self.assertEqual(1, len(self.found("hp1", task="image_uploading")))

    def test_live_migrations(self):
        """Only nova-compute on the source copies memory, once it was asked to."""
        host = self.cloud.hosts["hp1"]
        for status in (None, *UNFINISHED):
            migration = Migration("m", "i-a", "live-migration", status, "hp1")
            self.cloud.parts["migrations"] = (migration,) if status else ()
            for up in (True, False):
                self.cloud.hosts["hp1"] = dataclasses.replace(host, up=up)
                copied = up and status not in {None, "accepted"}
                found = self.found("hp1", status="MIGRATING", task="migrating")
                self.assertEqual(
                    [] if copied else [codes.STUCK], [one.code for one in found]
                )

    def test_no_compute_is_asked_yet_as_nova_names_it(self):
        objects.register_all()
        made = self.useFixture(
            fixtures.MockPatchObject(objects.Migration, "create", autospec=True)
        ).mock
        conductor = mock.Mock(spec=manager.ComputeTaskManager)
        server = objects.Instance(uuid=uuidsentinel.a, host="hp1", instance_type_id=1)
        manager.ComputeTaskManager._live_migrate(
            conductor, context.get_admin_context(), server, {}, False, False, None
        )
        ((migration,), _) = made.call_args
        self.assertEqual(progress._ACCEPTED, migration.status)

    def test_tasks_that_copy_are_as_nova_names_them(self):
        found = {
            str(t) for t in fields.InstanceTaskState.ALL if progress.copies(str(t))
        }
        self.assertIn("resize_migrating", found)
        shelving = {"shelving_image_pending_upload", "shelving_image_uploading"}
        self.assertEqual(set(), (shelving | {"image_backup"}) - found)


class CutOffTest(ProgressCase):
    def test_an_answer_that_did_not_come(self):
        """A guest may run on a host of which Nova knows no server."""
        cut_off = {"status": "ERROR", "fault": NO_ANSWER}
        (finding,) = self.found(None, progress.check_builds, **cut_off)
        self.assertEqual(codes.BUILD_CUT_OFF, finding.code)
        self.assertEqual("a (i-a)", finding.subject)
        self.assertIn("in ERROR by MessagingTimeout and on no host", finding.observed)
        self.assertIn(DELETE, finding.remedy)
        for host, server in (
            (None, {"status": "ERROR", "fault": "No valid host"}),
            (None, {"status": "BUILD", "fault": NO_ANSWER}),
            # Nova knows where that guest is.
            ("hp1", cut_off),
        ):
            self.assertEqual([], self.found(host, progress.check_builds, **server))
