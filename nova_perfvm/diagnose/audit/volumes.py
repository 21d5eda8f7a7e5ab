# SPDX-License-Identifier: Apache-2.0
"""Check that VMs boot from volumes of their class's volume type."""

from collections.abc import Iterator
from shlex import quote

from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.findings import Finding


def check_types(subject: Subject) -> Iterator[Finding]:
    """List the classes whose volume type does not exist in Cinder."""
    there = subject.snapshot.volume_types or ()
    for vm_class in subject.policy.classes:
        name = vm_class.disk.volume_type
        if name is not None and name not in there:
            yield Finding.of(
                codes.VOLUME_TYPE_MISSING,
                f"class {vm_class.name}",
                f"its VMs boot from volumes of type {name}, which Cinder does not have",
                "openstack volume type create --property volume_backend_name=BACKEND "
                f"{quote(name)}  # by the backend's name in cinder.conf",
            )


def check_roots(subject: Subject) -> Iterator[Finding]:
    """List the servers whose root volume has another type than their class."""
    for server in subject.snapshot.servers:
        vm_class = subject.class_of(server) if server.known else None
        volume = subject.snapshot.root_volume_by_server.get(server.id)
        if vm_class is None or volume is None or not server.volume_backed:
            continue
        wanted = vm_class.disk.volume_type
        if wanted is not None and volume.volume_type != wanted:
            yield Finding.of(
                codes.VOLUME_TYPE_DIFFERS,
                str(server),
                f"its root volume is of {volume.volume_type or 'no type'}, and class "
                f"{vm_class.name} has {wanted}",
                f"openstack volume set --type {quote(wanted)} "
                f"--retype-policy on-demand {volume.id}  # copies it",
            )
