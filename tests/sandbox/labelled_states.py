# SPDX-License-Identifier: Apache-2.0
"""Random states of a cloud whose hosts are told apart by labels."""

from nova_perfvm import constants as const
from tests.sandbox import states

# So many labels are given to any host, and so many to hosts without servers.
_PHASE = 50
# Of several-classes.yaml.
_SMALL = states.HIGH | {const.CLASS_KEY: "small"}
_BOOTS = ["a-own", "hp.20c.64g", "hp.20c.64g", "s.8c.150g", "s.8c.150g", "g.2c.4g"]
_OFTEN = {"hp.20c.64g": 4, "s.8c.150g": 2, "c.4c.4g": 2, "g.2c.4g": 2}
# And how often each is given.
_LABELS = {
    None: 1,
    "fast": 1,
    "general": 1,
    "capped": 5,
    "small": 3,
    "small,general": 3,
    "high-performance": 4,
    "high-performance,general": 6,
    "high-performance,small": 1,
}


class LabelledStates(states.States):
    """Gives hosts other labels, too, in each state."""

    odd = states.States.odd | {"a-pages": (8, 1, _SMALL)}
    # Few hosts are at times for what has too much memory for any node.
    often = (*states.States.often, "a-large")
    boots = 6

    def __init__(self, sandbox, api, policy, rng):
        super().__init__(sandbox, api, policy, rng)
        self._bootable += _BOOTS
        self._ours = [name for name in self._ours for _ in range(_OFTEN.get(name, 1))]
        self._labels = {}
        self._labellings = 0
        self._own_labels()

    def change(self):
        return f"{self._relabel()}; {self._relabel()}; {super().change()}"

    def _names(self):
        return [*super()._names(), self._random.choice(self._ours)]

    def _own_labels(self):
        """Give each host an aggregate of its own in place of its class's."""
        for found in self._api.nova("GET", "/os-aggregates", key="aggregates"):
            if const.CLASS_KEY in found["metadata"]:
                for host in found["hosts"]:
                    self._act(found["id"], remove_host={"host": host})
                    back = {"host": host}
                    self._made.append(
                        lambda made=found["id"], back=back: self._act(
                            made, add_host=back
                        )
                    )
        for host in self._hosts:
            self._labels[host], undo = self._aggregate(host, {})
            self._made.append(undo)
            self._relabel(host)

    def _relabel(self, host=None):
        host = host or self._host()
        self._labellings += 1
        if host in self._servers.values() and self._labellings // _PHASE % 2:
            # Hosts that are always taken from their servers are never full, and
            # those that never are hold no strangers.
            return f"{host} is as it was"
        (label,) = self._random.choices(list(_LABELS), _LABELS.values())
        metadata = {const.CLASS_KEY: label}
        self._act(self._labels[host], set_metadata={"metadata": metadata})
        return f"{host} is for {label}"
