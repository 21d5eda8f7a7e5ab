# SPDX-License-Identifier: Apache-2.0
"""Builds that ended half way, whose guests nobody knows of."""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.findings import Finding

# What Nova notes as the fault where nova-compute got no answer: of exceptions
# that are not its own it shows the class alone.
_NO_ANSWER: Final = frozenset(
    {"MessageDeliveryFailure", "MessagingTimeout", "RemoteError"}
)


def check(subject: Subject) -> Iterator[Finding]:
    """List servers in ERROR on no host whose guests may run nevertheless.

    nova-compute starts the guest and then asks nova-conductor to note it.  If no
    answer comes, it gives up the server, its host and its allocation, but not the
    guest (``_do_build_and_run_instance`` of nova/compute/manager.py).
    """
    for server in subject.snapshot.servers:
        if (
            server.status == "ERROR"
            and server.host is None
            and server.fault in _NO_ANSWER
        ):
            yield Finding.of(
                codes.BUILD_CUT_OFF,
                str(server),
                f"it is in ERROR by {server.fault} and on no host: the guest may have "
                "been started, and runs beside what Nova knows of",
                f"openstack server event list {server.id}\n"
                f"openstack server delete {server.id}",
            )
