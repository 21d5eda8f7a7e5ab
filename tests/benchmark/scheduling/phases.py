# SPDX-License-Identifier: Apache-2.0
"""Where nova-scheduler's CPU time goes: real methods, timed around."""

import contextlib
import functools
import time

from nova.scheduler import utils

from tests.benchmark.scheduling.placements import CPU_HEADER

CANDIDATES = "allocation candidates"
READ = "compute nodes read"
STATES = "host states"
COPIES = "candidates copied"
WEIGHERS = "weighers"
CLAIM = "claim"
REST = "rest"


class Phases:
    """CPU time of this process in each phase of a request, none counted twice.

    :ivar cpu_ms: by the name of the phase, or of the filter
    :ivar placement_ms: CPU time of Placement, by the method of its API
    :ivar candidates: how many Placement has given
    :ivar hosts: how many hosts Nova's filters were shown
    :ivar passed: by the name of a filter, how many hosts it let pass
    """

    def __init__(self):
        self._open = []
        self.clear()

    def clear(self):
        """Forget the request before."""
        self.cpu_ms, self.placement_ms, self.passed = {}, {}, {}
        self.candidates = self.hosts = 0

    @contextlib.contextmanager
    def phase(self, name):
        """Count what is spent here, phases within it apart."""
        started = time.process_time()
        self._open.append(0.0)
        try:
            yield
        finally:
            spent = (time.process_time() - started) * 1000
            within = self._open.pop()
            self.cpu_ms[name] = self.cpu_ms.get(name, 0.0) + spent - within
            if self._open:
                self._open[-1] += spent

    def watch(self, manager):
        """Time the methods of a SchedulerManager."""
        hosts, client = manager.host_manager, manager.placement_client
        self._around(hosts, "_get_computes_for_cells", READ)
        self._around(hosts, "get_weighed_hosts", WEIGHERS)
        self._around(hosts.filter_handler, "get_filtered_objects", COPIES)
        self._around(manager, "select_destinations", REST)
        self._around(utils, "claim_resources", CLAIM)
        for method in ("get", "put"):
            self._watch_placement(client, method)
        self._watch_candidates(client)
        self._watch_states(hosts)
        for each in hosts.enabled_filters:
            self._watch_filter(each)

    def _around(self, owner, name, phase):
        original = getattr(owner, name)

        @functools.wraps(original)
        def timed(*args, **options):
            with self.phase(phase):
                return original(*args, **options)

        setattr(owner, name, timed)

    def _watch_placement(self, client, method):
        original = getattr(client, method)

        def asked(*args, **options):
            answer = original(*args, **options)
            spent = float(answer.headers.get(CPU_HEADER, 0))
            self.placement_ms[method] = self.placement_ms.get(method, 0.0) + spent
            return answer

        setattr(client, method, asked)

    def _watch_candidates(self, client):
        original = client.get_allocation_candidates

        def asked(*args, **options):
            with self.phase(CANDIDATES):
                found = original(*args, **options)
            self.candidates += len(found[0] or ())
            return found

        client.get_allocation_candidates = asked

    def _watch_states(self, hosts):
        original = hosts._get_host_states

        def made(*args):
            with self.phase(STATES):
                found = list(original(*args))
            self.hosts += len(found)
            return iter(found)

        hosts._get_host_states = made

    def _watch_filter(self, judge):
        original, name = judge.filter_all, type(judge).__name__

        def judged(hosts, spec_obj):
            with self.phase(name):
                found = list(original(hosts, spec_obj))
            self.passed[name] = len(found)
            return found

        judge.filter_all = judged
