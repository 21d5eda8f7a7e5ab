# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What must hold whatever slipped past: the policy's invariants, checked after.

Pure functions of the policy and of what was observed: the servers that run, the
CPUs that they are pinned to, and what Placement has allocated.  Storm tests and
the audit ask the same questions.
"""

from __future__ import annotations

import collections
import itertools
from typing import TYPE_CHECKING, NamedTuple

from nova_perfvm import cpuset
from nova_perfvm.rules import host_slots

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nova_perfvm.facts import NUMACell
    from nova_perfvm.model import Policy


class ServerFacts(NamedTuple):
    """One server as it runs.

    :ivar class_name: its class; None for pinned servers of no class
    :ivar host: the hypervisor it is on
    :ivar pinned_cpus: host CPUs that its vCPUs are pinned to
    """

    id: str
    name: str
    class_name: str | None
    host: str
    pinned_cpus: frozenset[int] = frozenset()


class Usage(NamedTuple):
    """One inventory of a resource provider.

    :ivar capacity: (total - reserved) x allocation_ratio
    """

    provider: str
    resource_class: str
    capacity: int
    used: int


class Finding(NamedTuple):
    """One violation.

    :ivar code: dotted and stable, such as ``audit.pins_overlap``
    :ivar subject: the host, provider or consumer that it is about
    :ivar evidence: the figures and names behind it
    """

    code: str
    subject: str
    evidence: str

    def __str__(self) -> str:
        """Give ``code subject: evidence``."""
        return f"{self.code} {self.subject}: {self.evidence}"


TOO_MANY_ON_HOST = "audit.too_many_on_host"
TOO_MANY_ON_CELL = "audit.too_many_on_cell"
PINS_OVERLAP = "audit.pins_overlap"
CLASSES_MIXED = "audit.classes_mixed"
NOT_IN_ONE_CELL = "audit.not_in_one_cell"
OVER_INVENTORY = "audit.usage_exceeds_inventory"
LEAKED_ALLOCATION = "audit.leaked_allocation"


def check_servers(
    policy: Policy,
    cells: Mapping[str, Sequence[NUMACell]],
    servers: Iterable[ServerFacts],
) -> list[Finding]:
    """List what servers violate, host by host.

    :param cells: the NUMA cells of each host, by its name
    """
    by_host: dict[str, list[ServerFacts]] = collections.defaultdict(list)
    for server in servers:
        by_host[server.host].append(server)
    found: list[Finding] = []
    for host, here in sorted(by_host.items()):
        found.extend(_pins(host, here))
        found.extend(_classes(policy, host, here))
        found.extend(_counts(policy, host, cells.get(host, ()), here))
    return found


def check_usage(usages: Iterable[Usage]) -> list[Finding]:
    """List the inventories of which more is allocated than there is."""
    return [
        Finding(
            OVER_INVENTORY,
            usage.provider,
            f"{usage.used} of {usage.capacity} {usage.resource_class} allocated: set "
            "[placement]allocation_conflict_retry_count = 1",
        )
        for usage in usages
        if usage.used > usage.capacity
    ]


def check_consumers(
    consumers: Iterable[str], servers: Iterable[str], migrations: Iterable[str] = ()
) -> list[Finding]:
    """List the consumers of allocations that are neither server nor migration.

    :param consumers: UUIDs that Placement has allocations for
    :param servers: UUIDs of servers that are on a host
    :param migrations: UUIDs of migrations under way
    """
    known = set(servers) | set(migrations)
    return [
        Finding(LEAKED_ALLOCATION, consumer, "no server on a host has this UUID")
        for consumer in sorted(set(consumers) - known)
    ]


def _pins(host: str, servers: Sequence[ServerFacts]) -> Iterator[Finding]:
    for one, other in itertools.combinations(servers, 2):
        both = one.pinned_cpus & other.pinned_cpus
        if both:
            yield Finding(
                PINS_OVERLAP,
                host,
                f"{one.name} and {other.name} are both pinned to "
                f"{cpuset.format_cpus(both)}",
            )


def _classes(
    policy: Policy, host: str, servers: Sequence[ServerFacts]
) -> Iterator[Finding]:
    names = sorted({server.class_name or "(none)" for server in servers})
    exclusive = [
        vm_class.name
        for vm_class in policy.pinned_classes
        if vm_class.exclusive == "host" and vm_class.name in names
    ]
    if exclusive and len(names) > 1:
        yield Finding(
            CLASSES_MIXED,
            host,
            f"VMs of {', '.join(names)}, and {', '.join(exclusive)} wants hosts for "
            "itself",
        )


def _counts(
    policy: Policy,
    host: str,
    cells: Sequence[NUMACell],
    servers: Sequence[ServerFacts],
) -> Iterator[Finding]:
    for vm_class in policy.pinned_classes:
        mine = [server for server in servers if server.class_name == vm_class.name]
        cap = vm_class.max_per_host
        if cap is not None and len(mine) > cap:
            yield Finding(
                TOO_MANY_ON_HOST,
                host,
                f"{len(mine)} VMs of {vm_class.name}, max_per_host is {cap}",
            )
        for cell in cells:
            cpus = cell.cpuset | cell.pcpuset
            here = [server for server in mine if server.pinned_cpus & cpus]
            slots = host_slots(vm_class, [cell], memory_mb=0)
            if len(here) > slots and vm_class.cells_per_vm == 1:
                names = ", ".join(server.name for server in here)
                yield Finding(
                    TOO_MANY_ON_CELL,
                    host,
                    f"cell {cell.id} has {slots} slot(s) for {vm_class.name} and "
                    f"{len(here)} VMs: {names}",
                )
        for server in mine:
            touched = [
                cell.id
                for cell in cells
                if server.pinned_cpus & (cell.cpuset | cell.pcpuset)
            ]
            if cells and len(touched) != vm_class.cells_per_vm:
                yield Finding(
                    NOT_IN_ONE_CELL,
                    host,
                    f"{server.name} is pinned on cells {touched or 'none'}, its class "
                    f"wants {vm_class.cells_per_vm}",
                )
