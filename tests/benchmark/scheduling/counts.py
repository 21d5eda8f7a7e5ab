# SPDX-License-Identifier: Apache-2.0
"""What a request costs, and what nova-scheduler was shown: real methods, watched."""

from tests.benchmark.placements import CPU_HEADER


class Counts:
    """What is counted of one request.

    :ivar placement_ms: CPU time of Placement
    :ivar candidates: how many Placement has given
    :ivar hosts: how many hosts Nova's filters were shown
    :ivar refused: how many of these the last filter has refused: that of NUMA nodes
    """

    def __init__(self, manager):
        self.clear()
        hosts, client = manager.host_manager, manager.placement_client
        for name in ("get", "put"):
            self._watch(client, name, self._asked)
        self._watch(client, "get_allocation_candidates", self._given)
        self._watch(hosts, "_get_host_states", self._shown)
        last, original = hosts.enabled_filters[-1], hosts.enabled_filters[-1].filter_all
        last.filter_all = lambda *args: self._judged(original, *args)

    def clear(self):
        """Forget the request before."""
        self.placement_ms = 0.0
        self.candidates = self.hosts = self.refused = 0

    @staticmethod
    def _watch(owner, name, count):
        original = getattr(owner, name)
        setattr(owner, name, lambda *args, **kwargs: count(original(*args, **kwargs)))

    def _asked(self, answer):
        self.placement_ms += float(answer.headers.get(CPU_HEADER, 0))
        return answer

    def _given(self, answer):
        self.candidates += len(answer[0] or ())
        return answer

    def _shown(self, states):
        found = list(states)
        self.hosts += len(found)
        return iter(found)

    def _judged(self, original, hosts, spec_obj):
        given = list(hosts)
        found = list(original(given, spec_obj))
        self.refused += len(given) - len(found)
        return iter(found)
