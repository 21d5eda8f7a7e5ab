# SPDX-License-Identifier: Apache-2.0
"""Check that servers hold in Placement what VMs of their class take.

If a VM does not hold its slot, Placement gives the slot to another VM: the host's cap
and the exclusion of other classes fail.  If a VM holds too much, it keeps VMs off that
the host has room for.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.placement import is_moving
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.diagnose.elastic_slots import as_enrolled
from nova_perfvm.facts.snapshot import ComputeHost, Server
from nova_perfvm.findings import Finding
from nova_perfvm.placement import commands
from nova_perfvm.placement.schemes import is_ours, scheme_of

# Resource classes of nova_perfvm that do not count VMs.
_OF_DISKS: Final = frozenset({const.RC_READ_IOPS, const.RC_WRITE_IOPS})


def check(subject: Subject) -> Iterator[Finding]:
    """List the servers that hold more or less than VMs of their class take.

    Servers without units on elastic hosts are checked host by host, see
    :mod:`nova_perfvm.diagnose.audit.units`.  This check covers VMs of pinned classes on
    hosts that should be elastic but are not, and VMs that hold the units of another
    class.
    """
    if not scheme_of(subject.policy).counts:
        return
    for server in subject.snapshot.servers:
        host = subject.hosts_seen.get(server.host or "")
        # During a resize a server may hold the resources of its former flavor.
        if host is not None and not is_moving(subject.snapshot, server):
            yield from _of_server(subject, server, host)


def _of_server(
    subject: Subject, server: Server, host: ComputeHost
) -> Iterator[Finding]:
    """Compare the resources that a server holds with those that it should hold.

    A host that was enrolled with another number of children is judged by that number.
    """
    view, vm_class = subject.elastic_hosts.get(host.host), subject.class_of(server)
    if vm_class is None or not (view or subject.managed(host.host)):
        return
    vm_class = vm_class.of_size(server.vcpus)
    policy = as_enrolled(subject.policy, view) if view else subject.policy
    scheme = scheme_of(policy)
    held = Counter[str]()
    for provider in subject.snapshot.trees[host.provider]:
        held.update(provider.allocations.get(server.id, {}))
    wanted = scheme.amounts(policy, vm_class, server.memory_mb)
    lacking, more = wanted - held, held - wanted
    excess = {n: m for n, m in more.items() if is_ours(n) and n not in _OF_DISKS}
    without_units = scheme.enrolls and not held[scheme.resource_class]
    takes = (
        f"on {host.host}: VMs of class {vm_class.name} take "
        f"{_words(wanted) or 'nothing'} of their host, and the VM's allocation"
    )
    if excess:
        remedy = subject.resize(server)
        if not excess.keys() & wanted.keys():
            names = " ".join(f"--resource-class {name}" for name in excess)
            remedy = f"openstack resource provider allocation unset {names} {server.id}"
        words = f"{takes} holds {_words(excess)} more"
        yield Finding.of(codes.CLAIMED_TOO_MUCH, str(server), words, remedy)
    # General VMs need units on elastic hosts only, which audit.units checks.
    told = (view and without_units) or (scheme.enrolls and not vm_class.pinned)
    if lacking and not told:
        offered = subject.snapshot.provider_by_uuid[host.provider].inventories
        remedy = subject.resize(server)
        if without_units:
            remedy = commands.enroll(policy, host.host, "--backfill")
        elif lacking.keys() <= offered.keys():
            remedy = codes.HEAL
        words = f"{takes} lacks {_words(lacking)}"
        yield Finding.of(codes.NOT_CLAIMED, str(server), words, remedy)


def _words(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(amounts.items()))
