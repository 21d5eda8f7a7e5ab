# SPDX-License-Identifier: Apache-2.0
"""The scheduler weigher: it prefers the host that loses the fewest slots."""

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

    One instance serves all threads of the process.  It holds the policy, which never
    changes, and the hosts that it could not read last.
    """

    # With these limits Nova divides scores by 100: weights lie between -1 and 1, and 0
    # stays 0 under any multiplier.  Without them Nova would stretch the scores over 0
    # to 1, and a host's weight would depend on the other hosts.
    minval = 0
    maxval = packing.FULL_SCALE

    def __init__(self) -> None:
        """Read the policy; see :func:`nova_perfvm.scheduler.startup.read_policy`."""
        super().__init__()
        self.policy = startup.read_policy("PerfVMWeigher")
        self._unreadable = unreadable.UnreadableHosts("PerfVMWeigher")

    def weight_multiplier(self, host_state: HostState) -> float:
        """Return the multiplier of the host's aggregates, or else the option's."""
        default: float = nova_conf.CONF.perfvm.weight_multiplier
        try:
            multiplier: float = scheduler_utils.get_weight_multiplier(
                host_state, "perfvm_weight_multiplier", default
            )
        except Exception:  # noqa: BLE001  _score() logs an unreadable host
            return default
        return multiplier

    def weigh_objects(
        self,
        weighed_obj_list: Sequence[weights.WeighedHost],
        weight_properties: objects.RequestSpec,
    ) -> list[int]:
        """Return each host's score from -100 to 100; the highest is the best.

        Overrides Nova's method, which would cut off scores below 0.  In mode
        ``observe`` every host scores 0.
        """
        if conf.observes(nova_conf.CONF):
            return [packing.NEUTRAL] * len(weighed_obj_list)
        request = adapters.request_facts(weight_properties)
        return [self._score(request, weighed.obj) for weighed in weighed_obj_list]

    def _weigh_object(
        self, host_state: HostState, weight_properties: objects.RequestSpec
    ) -> int:
        """Score one host; Nova's weight handler uses :meth:`weigh_objects`."""
        return self._score(adapters.request_facts(weight_properties), host_state)

    def _score(self, request: RequestFacts, host_state: HostState) -> int:
        """Return a host's score; the lowest score if the host cannot be judged."""
        name = unreadable.name_of(host_state)
        try:
            host = adapters.host_facts(host_state)
            points = packing.score(self.policy, request, host)
            error = fault(host)
        except Exception as exc:  # noqa: BLE001  the other hosts are still scored
            points, error = packing.WORST, adapters.in_words(exc)
        if error:
            self._unreadable.found(name, request.flavor, error)
        else:
            self._unreadable.read(name, request.flavor)
        return points
