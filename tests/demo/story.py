# SPDX-License-Identifier: Apache-2.0
"""What the demo boots, where, and what came of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from nova_perfvm import constants as const
from nova_perfvm.generate.flavors import PolicyFlavor, generate_flavors
from nova_perfvm.policy import Policy
from tests.cloud import BootedServer, EmbeddedCloud, EmbeddedGuest

HP_HOSTS = ("hp-1", "hp-2")
GENERAL_HOSTS = ("general-1",)
HOSTS = (*HP_HOSTS, *GENERAL_HOSTS)
CPUS = 40

# Without overcommit the general host is full after a few VMs.
OPTIONS = {(None, "cpu_allocation_ratio"): 1.0}

HP_CLASS = "high-performance"
GENERAL_CLASS = "general"
NO_CLASS = "(none)"

# Wrong on purpose: no generator makes them.
PINNED_4 = "pinned-4"
CLAIMS_HP_16 = "claims-hp-16"


@dataclasses.dataclass(frozen=True)
class BootOutcome:
    """One VM that was asked for.

    :ivar wanted_class: the class that its flavor claims
    :ivar guest: what Nova made of it, None when it was refused
    :ivar reasons: for a refused one {host: reasons in words}
    """

    server: BootedServer
    wanted_class: str
    guest: EmbeddedGuest | None
    reasons: dict[str, tuple[str, ...]]

    @property
    def booted(self) -> bool:
        """Tell whether Nova runs it."""
        return self.server.status == "ACTIVE"


def play(
    cloud: EmbeddedCloud, policy: Policy, progress: Callable[[str], None]
) -> list[BootOutcome]:
    """Start the hosts and boot VMs until they are refused.

    :param progress: called with a line of text at each step
    :returns: one BootOutcome for each VM, in the order of the requests
    """
    for name in HOSTS:
        progress(f"starting {name}")
        mode = "dedicated" if name in HP_HOSTS else "shared"
        cloud.start_configured(name, policy, mode)
    flavors = _create_flavors(cloud, policy)

    def boot(name: str, flavor: PolicyFlavor) -> BootOutcome:
        progress(f"booting {name} ({flavor.name})")
        return _outcome(cloud, cloud.boot(flavor.name, name=name), flavor)

    # The misfits first, while there is room for them everywhere.
    outcomes = [boot(flavor.name, flavor) for flavor in _MISFITS]
    for prefix, flavor in zip(("hp", "general"), flavors, strict=True):
        # The bound ends a demo whose policy is not enforced.
        for count in range(1, CPUS + 2):
            outcomes.append(boot(f"{prefix}-vm-{count}", flavor))
            if not outcomes[-1].booted:
                break
    return outcomes


def _create_flavors(cloud: EmbeddedCloud, policy: Policy) -> list[PolicyFlavor]:
    """Create all flavors; return one of each class."""
    flavors = {flavor.name: flavor for flavor in generate_flavors(policy)}
    for flavor in (*flavors.values(), *_MISFITS):
        specs = dict(flavor.extra_specs)
        size = (flavor.vcpus, flavor.memory_mb, flavor.root_gb)
        cloud.create_flavor(flavor.name, *size, specs)
    return [flavors["hp.20c.64g"], flavors["g.8c.16g"]]


_PINNED = {const.CPU_POLICY: "dedicated", const.NUMA_NODES: "1"}
_MISFITS = (
    PolicyFlavor(PINNED_4, NO_CLASS, 4, 8 * 1024, 0, _PINNED),
    PolicyFlavor(
        CLAIMS_HP_16,
        HP_CLASS,
        16,
        64 * 1024,
        0,
        _PINNED | {const.VIF_MULTIQUEUE: "true", const.CLASS_KEY: HP_CLASS},
    ),
)


def _outcome(
    cloud: EmbeddedCloud, server: BootedServer, flavor: PolicyFlavor
) -> BootOutcome:
    if server.status == "ACTIVE":
        return BootOutcome(server, flavor.class_name, cloud.guest(server), {})
    # What Placement prunes, the scheduler never sees.
    reasons = dict.fromkeys(HOSTS, ("Placement: no room",))
    for verdict in cloud.verdicts(server):
        found = zip(verdict.codes, verdict.words, strict=True)
        reasons[verdict.host] = tuple(f"{code}: {words}" for code, words in found)
    return BootOutcome(server, flavor.class_name, None, reasons)
