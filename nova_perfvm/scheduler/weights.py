# SPDX-License-Identifier: Apache-2.0
"""The scheduler weigher: VMs go where they cost the fewest slots."""

from __future__ import annotations

from collections.abc import Sequence

from nova import conf as nova_conf
from nova import objects
from nova.scheduler import utils as scheduler_utils
from nova.scheduler import weights
from nova.scheduler.host_manager import HostState

from nova_perfvm import conf
from nova_perfvm.facts import RequestFacts
from nova_perfvm.rules import packing
from nova_perfvm.rules.host.unreadable import fault
from nova_perfvm.scheduler import adapters, startup, unreadable


class PerfVMWeigher(weights.BaseHostWeigher):
    """Pack VMs so that whole slots stay free; see :mod:`nova_perfvm.rules.packing`.

    One instance serves all threads of the process: it holds the policy, which
    never changes, and which hosts could not be read last.
    """

    # Left to itself Nova stretches what it is given over 0 to 1, and a host's
    # score would depend on which others are in the list.  With both ends named
    # it divides by 100 and no more: scores come out as -1 to 1, and 0 stays 0,
    # so "no matter" is the same under any multiplier, of either sign.
    minval = 0
    maxval = packing.FULL_SCALE

    def __init__(self) -> None:
        """Read the policy; see :func:`nova_perfvm.scheduler.startup.read_policy`."""
        super().__init__()
        self.policy = startup.read_policy("PerfVMWeigher")
        self._unreadable = unreadable.UnreadableHosts("PerfVMWeigher")

    def weight_multiplier(self, host_state: HostState) -> float:
        """Return the option's value, or that of the host's aggregates."""
        default: float = nova_conf.CONF.perfvm.weight_multiplier
        try:
            multiplier: float = scheduler_utils.get_weight_multiplier(
                host_state, "perfvm_weight_multiplier", default
            )
        except Exception:  # noqa: BLE001  told where the host is judged
            return default
        return multiplier

    def weigh_objects(
        self,
        weighed_obj_list: Sequence[weights.WeighedHost],
        weight_properties: objects.RequestSpec,
    ) -> list[int]:
        """Return each host's score in points, higher being better.

        All hosts at once, because the request is the same for all; and because
        Nova's own method would cut off the scores below 0.  In mode ``observe`` it
        has no say.
        """
        if conf.observes(nova_conf.CONF):
            return [packing.NEUTRAL] * len(weighed_obj_list)
        request = adapters.request_facts(weight_properties)
        return [self._score(request, weighed.obj) for weighed in weighed_obj_list]

    def _weigh_object(
        self, host_state: HostState, weight_properties: objects.RequestSpec
    ) -> int:
        """Judge one host; Nova's weight handler uses :meth:`weigh_objects`."""
        return self._score(adapters.request_facts(weight_properties), host_state)

    def _score(self, request: RequestFacts, host_state: HostState) -> int:
        """Return a host's points; the fewest there are if it cannot be judged."""
        name = unreadable.name_of(host_state)
        try:
            host = adapters.host_facts(host_state)
            points = packing.score(self.policy, request, host)
            error = fault(host)
        except Exception as exc:  # noqa: BLE001  a host's, whatever it is
            points, error = packing.WORST, adapters.in_words(exc)
        if error:
            self._unreadable.found(name, request.flavor, error)
        else:
            self._unreadable.read(name, request.flavor)
        return points
