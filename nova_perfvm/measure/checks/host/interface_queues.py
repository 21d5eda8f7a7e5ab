# SPDX-License-Identifier: Apache-2.0
"""A VM's network interfaces have a queue for each vCPU, where its class promises it."""

from collections.abc import Iterator

from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.host_subject import HostSubject, unread
from nova_perfvm.measure.observed.domains import Domain, Interface

# MAX_TAP_QUEUES of the kernel.
_MOST_OF_TAP = 256


def find(subject: HostSubject) -> Iterator[Finding]:
    """Look at the interfaces of each VM."""
    for domain in subject.domains:
        vm_class = subject.class_of(domain)
        if vm_class is None or not vm_class.vif_multiqueue:
            continue
        if not domain.interfaces:
            yield skipped(domain.name, "it has no network interface", domain.source)
        for number, interface in enumerate(domain.interfaces):
            label = interface.target or interface.mac or str(number)
            yield _judged(domain, interface, f"{domain.name}: {label}")
    yield from unread(subject)


def _judged(domain: Domain, interface: Interface, name: str) -> Finding:
    if domain.kind != "kvm":
        reason = f"Nova gives queues to VMs of KVM only, and this is {domain.kind}"
        return skipped(name, reason, domain.source)
    if interface.model != "virtio" or interface.kind in {"hostdev", "vdpa"}:
        # Their hardware decides.
        kind = f"{interface.kind}, model {interface.model or 'of the device'}"
        reason = f"no rule for {kind}: see guest check"
        decides = interface.kind in {"hostdev", "vdpa"}
        cause = Cause.HARDWARE_DECIDES if decides else ""
        return skipped(name, reason, domain.source, cause=cause)
    wanted = min(domain.vcpus, _MOST_OF_TAP)
    return judged(
        name,
        f"{wanted} queues for {domain.vcpus} vCPUs",
        str(interface.queues),
        domain.source,
        holds=interface.queues >= wanted,
        remedy="resize the server to a flavor with hw:vif_multiqueue_enabled=true; if "
        f"it has one, openstack server reboot --hard {domain.uuid}, and see that "
        "[libvirt]max_queues of the host does not limit it",
    )


CHECK = Check(
    70, "hypervisor.interface_queues", "Each interface has a queue for each vCPU", find
)
