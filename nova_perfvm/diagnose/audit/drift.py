# SPDX-License-Identifier: Apache-2.0
"""Check that Placement and Nova have servers on the same NUMA nodes."""

from collections.abc import Iterator
from shlex import quote
from typing import Final

from nova_perfvm import findings as codes
from nova_perfvm.diagnose import moves
from nova_perfvm.diagnose.audit.placement import is_moving
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.diagnose.drift import away, drifted, kept_for_others
from nova_perfvm.facts.snapshot import NOVA_DATABASE
from nova_perfvm.findings import Finding
from nova_perfvm.placement.host_schemes.residents import in_words

_WAITS: Final = "VERIFY_RESIZE"
_RETURNS: Final = "would come back to other CPUs in Nova if its resize is reverted"


def check(subject: Subject) -> Iterator[Finding]:
    """List the servers that hold other child providers of their hosts than they use.

    Also servers with an unconfirmed resize whose migration holds other children, if
    Nova's database tells: these servers may come back.
    """
    snapshot = subject.snapshot
    movers = {move.id: move.server for move in snapshot.migrations}
    waiting = {s.id for s in snapshot.servers if s.status == _WAITS and not s.task}
    for host in subject.elastic_hosts.values():
        found = [
            (d.server, in_words(d.held), f"by its pins should hold {in_words(d.run)}")
            for d in drifted(subject.policy, host)
            if d.server.id in waiting or not is_moving(snapshot, d.server)
        ]
        if host.compute.cells_source == NOVA_DATABASE:
            kept = kept_for_others(host)
            found += (
                (snapshot.server_by_id[moved], in_words(resident.held), _RETURNS)
                for resident in away(subject.policy, host)
                if (moved := movers.get(resident.consumer, "")) in waiting
                and resident.held.keys() - kept
            )
        for server, held, why in found:
            status = _WAITS if server.id in waiting else ""
            align = f"openstack perfvm align {quote(host.host)}"
            yield Finding.of(
                codes.CELL_DIFFERS,
                str(server),
                f"on {host.host}: it holds {held}, and {why}",
                moves.prepared(server.id, status, align),
            )
