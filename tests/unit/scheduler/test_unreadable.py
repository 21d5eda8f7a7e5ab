# SPDX-License-Identifier: Apache-2.0
"""Hosts of which Nova knows what makes no sense, on Nova's own HostState."""

import types
from unittest import mock

import fixtures
import testtools
from nova import exception, objects
from nova.scheduler import weights as nova_weights
from oslo_db import exception as db_exception

from nova_perfvm import rules
from nova_perfvm.scheduler import filters, weights
from tests.unit.scheduler import states
from tests.unit.scheduler.case import ConfigCase
from tests.unit.scheduler.states import GENERAL


def _at(host, way):
    for step in way:
        host = host[int(step)] if step.isdigit() else getattr(host, step)
    return vars(host)


def _set(path, value):
    """Return what sets an attribute, also one that Nova's objects would refuse."""
    *way, name = path.split(".")
    return lambda host: _at(host, way).__setitem__(name, value)


def _unset(path):
    """Return what takes an attribute away."""
    *way, name = path.split(".")
    return lambda host: _at(host, way).__delitem__(name)


CELL = "numa_topology.cells.0"
# {what is odd: how a host becomes so}
ODD = {
    "no vcpus_used": _unset("vcpus_used"),
    "vcpus_used None": _set("vcpus_used", None),
    "vcpus_used text": _set("vcpus_used", "4"),
    "vcpus_used below 0": _set("vcpus_used", -4),
    "no num_instances": _unset("num_instances"),
    "num_instances None": _set("num_instances", None),
    "num_instances below 0": _set("num_instances", -1),
    "no numa_topology": _unset("numa_topology"),
    "numa_topology text": _set("numa_topology", "{}"),
    "a topology without cells": _unset("numa_topology._obj_cells"),
    "cells None": _set("numa_topology._obj_cells", None),
    "a cell None": lambda host: list.__setitem__(host.numa_topology.cells, 0, None),
    "no aggregates": _unset("aggregates"),
    "aggregates a number": _set("aggregates", 7),
    "an aggregate without metadata": _set("aggregates", [objects.Aggregate(id=1)]),
    "a label that is no text": _set(
        "aggregates", [types.SimpleNamespace(metadata={"perfvm:class": None})]
    ),
    "no host": _unset("host"),
    "no nodename": _unset("nodename"),
    **{
        f"no {name} of a cell": _unset(f"{CELL}._obj_{name}")
        for name in (
            *("id", "cpuset", "pcpuset", "pinned_cpus", "memory", "memory_usage"),
            "siblings",
        )
    },
    **{
        f"{name} of a cell None": _set(f"{CELL}._obj_{name}", None)
        for name in ("cpuset", "pcpuset", "pinned_cpus", "memory", "memory_usage")
    },
    "pcpuset text": _set(f"{CELL}._obj_pcpuset", "0-19"),
    "pinned_cpus a number": _set(f"{CELL}._obj_pinned_cpus", 3),
    "memory below 0": _set(f"{CELL}._obj_memory", -1),
    "memory text": _set(f"{CELL}._obj_memory", "much"),
}
# What only requests for pages look at.
ODD_PAGES = {
    "no mempages": _unset(f"{CELL}._obj_mempages"),
    "mempages None": _set(f"{CELL}._obj_mempages", None),
    "pages without a size": _unset(f"{CELL}.mempages.0._obj_size_kb"),
    "pages of which None are used": _set(f"{CELL}.mempages.0._obj_used", None),
}


def odd_host(change):
    host = well_host("odd")
    change(host)
    return host


def well_host(name):
    """Return an empty host that serves either class."""
    pools = [(4, 64 * 1024 * 1024, 0, 0)]
    topology = states.numa_topology("1x20", shared=range(20), mempages=pools)
    return states.host_state(name, topology)


class UnreadableCase(ConfigCase):
    # At DEBUG more is read of each host.
    LEVEL = 10

    def setUp(self):
        super().setUp()
        self.well = well_host("well")

    def lines(self, words):
        return [line for line in self.log.output.splitlines() if words in line]


class FilterTest(UnreadableCase):
    def passed(self, host, spec, judge=None):
        """Return which of an odd host and a well one pass."""
        judge = judge or filters.PerfVMFilter()
        found = judge.filter_all([host, self.well], spec)
        self.assertIn(self.well, found)
        return [host is passed for passed in found].count(True)

    def test_every_odd_host_alone_is_refused(self):
        paged = {"hw:mem_page_size": "small"}
        for specs, odd in (({}, ODD), (paged, ODD_PAGES)):
            spec = states.request_spec(extra_specs=states.HP_SPECS | specs)
            for what, change in odd.items():
                with fixtures.FakeLogger(level=10) as log:
                    passed = self.passed(odd_host(change), spec)
                self.assertEqual(0, passed, what)
                self.assertIn("1 of 2 hosts", log.output, what)
        for what, change in ODD.items():
            with fixtures.FakeLogger(level=10) as log:
                passed = self.passed(odd_host(change), states.request_spec(**GENERAL))
            # What general VMs do not ask about does not keep them off.
            self.assertEqual(not passed, "1 host." in log.output, what)

    def test_it_is_said_which_host_and_why(self):
        odd = odd_host(ODD["no memory of a cell"])
        judge = filters.PerfVMFilter()
        self.passed(odd, states.request_spec(), judge)
        (line,) = self.lines("PerfVMFilter cannot read")
        self.assertIn("host odd (odd): NotImplementedError: Cannot load 'memory'", line)
        self.assertEqual(1, len(self.lines("1 of 2 hosts")))
        self.assertIn("1 host.unreadable", self.log.output)
        said = "(odd, odd) refused: host.unreadable: Nova's data"
        self.assertIn(said, self.log.output)

    def test_what_is_said_may_be_odd_itself(self):
        class UnprintableError(Exception):
            def __str__(self):
                raise ValueError

        class Broken:
            def __getattr__(self, name):
                raise UnprintableError

        for name, said in (
            (["odd"], "['odd']"),
            ("odd\nCRITICAL it burns", r"odd\nCRITICAL it burns"),
        ):
            host = odd_host(_set("host", name))
            host.numa_topology = Broken()
            self.assertEqual(0, self.passed(host, states.request_spec()))
            self.assertEqual(1, len(self.lines(f"cannot read host {said} (")), name)
        self.assertEqual(
            0, self.passed(odd_host(ODD["no host"]), states.request_spec())
        )
        self.assertEqual(1, len(self.lines("cannot read host unknown (")))

    def test_once_until_it_is_well(self):
        judge = filters.PerfVMFilter()
        odd, well = odd_host(ODD["no vcpus_used"]), well_host("odd")
        spec = states.request_spec()
        for host, cannot, can in ((odd, 1, 0), (odd, 1, 0), (well, 1, 1), (odd, 2, 1)):
            self.passed(host, spec, judge)
            self.assertEqual(cannot, len(self.lines("cannot read host odd")))
            self.assertEqual(can, len(self.lines("can read host odd (odd) again")))

    def test_requests_that_do_not_ask_do_not_make_it_well(self):
        """Or two tenants would fill the log in turn."""
        judge = filters.PerfVMFilter()
        host = odd_host(ODD_PAGES["mempages None"])
        paged = states.HP_SPECS | {"hw:mem_page_size": "small"}
        for spec in (
            states.request_spec("paged", extra_specs=paged),
            states.request_spec(**GENERAL),
        ) * 3:
            self.passed(host, spec, judge)
        self.assertEqual(1, len(self.lines("read host odd")))

    def test_hosts_that_are_left_alone(self):
        """Nova decides there, as far as their labels can be read."""
        judge = filters.PerfVMFilter()
        object.__setattr__(judge.policy, "managed_hosts", "labelled")
        spec = states.request_spec(**GENERAL)
        for what, expected in (("vcpus_used None", 1), ("no aggregates", 0)):
            self.assertEqual(expected, self.passed(odd_host(ODD[what]), spec, judge))

    def test_hosts_whose_candidates_cannot_be_divided(self):
        judge = filters.PerfVMFilter()
        object.__setattr__(judge.policy, "placement", "units")
        self.patch(filters.rules, "check_request", lambda *_: ())
        self.patch(filters.rules, "check_host", lambda *_: ())
        self.well.allocation_candidates = []
        for change in (
            _unset("limits"),
            _set("allocation_candidates", None),
            _set("allocation_candidates", [{"mappings": {}}]),
        ):
            passed = judge.filter_all(
                [odd_host(change), self.well], states.request_spec()
            )
            self.assertEqual(["well"], [host.host for host in passed])

    def test_a_database_that_fails_is_asked_once_for_all_its_hosts(self):
        judge = filters.PerfVMFilter()
        object.__setattr__(judge.policy, "placement", "none")
        look = mock.Mock(side_effect=db_exception.DBConnectionError)
        self.patch(filters.residents.Residents, "_look", look)
        hosts = [well_host(name) for name in ("h1", "h2")]
        self.assertEqual([], judge.filter_all(hosts, states.request_spec()))
        self.assertEqual([mock.call(hosts[0].cell_uuid)], look.mock_calls)
        self.assertIn("2 host.unreadable", self.log.output)
        # As the advice has it.
        self.assertIn("cannot read host h1 (h1): DB", self.log.output)
        self.assertIn("name begins with DB", rules.REFUSALS["host.unreadable"].advice)

    def test_observing(self):
        self.config.config(group="perfvm", mode="observe")
        for what, change in ODD.items():
            passed = self.passed(odd_host(change), states.request_spec())
            self.assertEqual(1, passed, what)

    def test_a_request_that_cannot_be_read(self):
        """As with Nova's own filters: no host is to blame."""
        spec = states.request_spec()
        del spec.flavor._obj_vcpus
        judge = filters.PerfVMFilter()
        with testtools.ExpectedException(exception.ObjectActionError):
            judge.filter_all([self.well], spec)
        (line,) = self.lines("cannot judge the request")
        self.assertIn(spec.instance_uuid, line)


class WeigherTest(UnreadableCase):
    def test_an_odd_host_comes_last(self):
        handler = nova_weights.HostWeightHandler()
        pinned, general = states.request_spec(), states.request_spec(**GENERAL)
        for spec in (pinned, general):
            # Without these Nova's own handler fails.
            for what in ODD.keys() - {"no host", "no nodename"}:
                host = odd_host(ODD[what])
                with fixtures.FakeLogger(level=20) as log:
                    found = handler.get_weighed_objects(
                        [weights.PerfVMWeigher()], [host, self.well], spec
                    )
                weight = {id(each.obj): each.weight for each in found}
                if "cannot read" in log.output:
                    self.assertEqual(-1000, weight[id(host)], what)
                if spec is pinned:
                    self.assertLess(weight[id(host)], weight[id(self.well)], what)
