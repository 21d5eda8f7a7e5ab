# SPDX-License-Identifier: Apache-2.0
"""Whether Placement and Nova have servers on the same NUMA nodes."""

from collections.abc import Iterator
from shlex import quote

from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.placement import is_moving
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.diagnose.drift import drifted
from nova_perfvm.findings import Finding
from nova_perfvm.placement.schemes.residents import in_words


def check(subject: Subject) -> Iterator[Finding]:
    """List the servers that hold other child providers of their hosts than they use."""
    for host in subject.elastic_hosts.values():
        for found in drifted(subject.policy, host):
            if not is_moving(subject.snapshot, found.server):
                yield Finding.of(
                    codes.CELL_DIFFERS,
                    str(found.server),
                    f"on {host.host}: it holds {in_words(found.held)}, and by its pins "
                    f"in Nova should hold {in_words(found.run)}",
                    f"openstack perfvm align {quote(host.host)}",
                )
