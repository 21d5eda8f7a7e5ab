# SPDX-License-Identifier: Apache-2.0
"""What tells a move from a new server; on a real cloud: test_former_sizes.py."""

import contextlib
from unittest import mock

import fixtures
import testtools
from nova import exception, objects
from nova.compute import task_states
from oslo_db import exception as db_exception

from nova_perfvm.scheduler import filters, instances
from tests.unit.scheduler import states
from tests.unit.scheduler.test_filters import FilterCase

CELL = objects.CellMapping(uuid=objects.CellMapping.CELL0_UUID)


def instance(vcpus=20, host="hp1", vm_state="active", extra_specs=states.HP_SPECS):
    flavor = objects.Flavor(vcpus=vcpus, extra_specs=extra_specs)
    return objects.Instance(flavor=flavor, host=host, vm_state=vm_state)


class LookupMixin:
    def databases(self, found, cell=CELL):
        """Let Nova's databases answer so; return the mocks that are asked."""
        mapping = objects.InstanceMapping(cell_mapping=cell)
        self.useFixture(
            fixtures.MonkeyPatch(
                "nova.context.target_cell", lambda *_: contextlib.nullcontext()
            )
        )
        self.mappings = self.useFixture(
            fixtures.MockPatchObject(
                objects.InstanceMapping, "get_by_instance_uuid", return_value=mapping
            )
        ).mock
        self.instances = self.useFixture(
            fixtures.MockPatchObject(
                objects.Instance, "get_by_uuid", side_effect=[found]
            )
        ).mock


class MigratesLiveTest(LookupMixin, testtools.TestCase):
    def test_by_ignored_hosts_and_the_task(self):
        migrating = objects.Instance(task_state=task_states.MIGRATING)
        resized = objects.Instance(task_state=task_states.RESIZE_PREP)
        for name, ignored, found, expected in (
            ("a live migration", ["hp1"], migrating, True),
            ("a cold migration", ["hp1"], resized, False),
            ("no host is ignored", [], migrating, False),
        ):
            self.databases(found)
            spec = states.request_spec()
            spec.ignore_hosts = ignored
            self.assertEqual(expected, instances.migrates_live(spec), name)
            self.assertEqual(bool(ignored), self.instances.called, name)


class RunningVcpusTest(LookupMixin, testtools.TestCase):
    def vcpus(self, found, cell=CELL):
        self.databases(found, cell)
        return instances.running_vcpus(states.request_spec())

    def test_by_what_the_databases_have(self):
        for found, expected in (
            (instance(vcpus=18), 18),
            (instance(vm_state="error"), 20),
            (instance(extra_specs={}), None),
            (instance(host=None, vm_state="shelved_offloaded"), 20),
            (instance(host=None, vm_state="building"), None),
            (exception.InstanceNotFound(instance_id="x"), None),
        ):
            self.assertEqual(expected, self.vcpus(found), found)

    def test_a_new_server_is_in_no_cell(self):
        self.assertIsNone(self.vcpus(instance(), cell=None))
        self.instances.assert_not_called()

    def test_databases_that_do_not_answer(self):
        """Better a new VM of a former size than a running one that is lost."""
        log = self.useFixture(fixtures.FakeLogger())
        self.assertEqual(20, self.vcpus(db_exception.DBConnectionError("gone away")))
        self.assertIn("gone away", log.output)


class FilterTest(LookupMixin, FilterCase):
    def setUp(self):
        super().setUp()
        self.policy_file(
            """
schema_version: "1.0"
classes:
  high-performance:
    {vcpus: 18, former_vcpus: [20], cpu_policy: dedicated, numa_nodes: 1,
     vif_multiqueue: true, exclusive: host}
  general: {default: true}
"""
        )
        self.filter = filters.PerfVMFilter()

    def passes(self, **options):
        return self.filter.host_passes(
            states.host_state(), states.request_spec(**options)
        )

    def test_databases_are_asked_for_former_sizes_only(self):
        self.databases(instance())
        self.assertTrue(self.passes(vcpus=18))
        self.assertFalse(self.passes(vcpus=16))
        self.assertFalse(self.passes(vcpus=20, extra_specs={}))
        self.mappings.assert_not_called()

    def test_a_former_size(self):
        for what, found, cell, hints, expected in (
            ("a move", instance(), CELL, {}, True),
            ("a new server", instance(), None, {}, False),
            ("hints", instance(), None, {"_nova_check_type": ["move"]}, False),
            ("a resize to it", instance(vcpus=18), CELL, {}, False),
        ):
            self.databases(found, cell)
            self.assertEqual(expected, self.passes(vcpus=20, hints=hints), what)
            asked = mock.call(mock.ANY, states.request_spec().instance_uuid)
            self.assertEqual([asked], self.mappings.call_args_list)
