# SPDX-License-Identifier: Apache-2.0
"""Whether Placement has granted more than there is, and to whom."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.contract import claim
from nova_perfvm.diagnose.audit.placement import is_left, is_moving
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.facts.host_view import describe_consumer
from nova_perfvm.facts.snapshot import Provider
from nova_perfvm.findings import Finding
from nova_perfvm.generate.options import RETRIES


class Stray(NamedTuple):
    """Who holds of an inventory what is not for it, in words, and how much."""

    words: str
    amount: int


class Usage(NamedTuple):
    """One inventory of a resource provider.

    :ivar capacity: (total - reserved) x allocation_ratio
    :ivar strays: those that are known
    """

    provider: str
    resource_class: str
    capacity: int
    used: int
    uuid: str = "PROVIDER"
    strays: tuple[Stray, ...] = ()


def check(subject: Subject) -> Iterator[Finding]:
    """List what is allocated too much."""
    yield from check_usage(
        Usage(
            provider.name,
            name,
            capacity,
            used,
            provider.uuid,
            tuple(_strays(subject, provider, name)),
        )
        for provider in subject.snapshot.providers
        for name, used, capacity in provider.overused()
    )


def check_usage(usages: Iterable[Usage]) -> list[Finding]:
    """List the inventories of which more is allocated than there is."""
    return [
        Finding.of(
            codes.OVER_INVENTORY,
            usage.provider,
            f"{usage.used} of {usage.capacity} {usage.resource_class} allocated: "
            f"{'; '.join(_causes(usage))}",
            f"openstack resource provider show --allocations {usage.uuid}",
        )
        for usage in usages
        if usage.used > usage.capacity
    ]


def _causes(usage: Usage) -> Iterator[str]:
    """Say who has it, and of what is left that Placement granted too much."""
    yield from (stray.words for stray in usage.strays)
    if sum(stray.amount for stray in usage.strays) < usage.used - usage.capacity:
        yield f"set {RETRIES} = {RETRIES.values[0]}"


def _strays(subject: Subject, provider: Provider, name: str) -> Iterator[Stray]:
    """Find who holds of a resource class of a provider what is not for it."""
    snapshot = subject.snapshot
    if not snapshot.is_seen(provider):
        return
    root = provider.root or provider.uuid
    here = {host.host for host in snapshot.hosts if host.provider == root}
    migrations = {migration.id for migration in snapshot.migrations}
    for consumer, taken in sorted(provider.allocations.items()):
        amount = taken.get(name, 0)
        server = snapshot.server_by_id.get(consumer)
        moving = server is not None and (
            is_moving(snapshot, server) or is_left(snapshot, provider, server.id)
        )
        if not amount or moving or consumer in migrations:
            continue
        if server is None or (here and server.host not in here):
            who = describe_consumer(consumer, server)
            yield Stray(f"{who} holds {amount}", amount)
        elif (found := claim(subject, server)) and (more := found.claims.excess[name]):
            yield Stray(f"{server} holds {more} more than its class takes", more)
