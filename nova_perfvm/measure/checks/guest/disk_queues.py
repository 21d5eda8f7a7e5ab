# SPDX-License-Identifier: Apache-2.0
"""Virtual disks have a queue for each vCPU, and a scheduler that lets them."""

from collections.abc import Iterator

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.observed.disks import (
    BLOCK,
    VIRTIO_BLK,
    VIRTIO_SCSI,
    DiskDevice,
)

_DRIVERS = (VIRTIO_BLK, VIRTIO_SCSI)
# QEMU gives no device more (VIRTIO_QUEUE_MAX, of which two others may be needed).
_MOST = 1022
# The device below orders requests itself.  bfq and kyber take CPU time for each.
_SCHEDULERS = ("none", "noop", "mq-deadline", "deadline")


def find_queues(subject: GuestSubject) -> Iterator[Finding]:
    """Count the queues of each disk."""
    for disk in subject.disks:
        yield _queues(subject, disk)


def _queues(subject: GuestSubject, disk: DiskDevice) -> Finding:
    if disk.driver not in _DRIVERS:
        reason = f"no rule for the driver {disk.driver or 'that was not read'}"
        return skipped(disk.name, reason)
    if not disk.queues:
        return skipped(disk.name, "its queues were not read", f"{BLOCK}/{disk.name}/mq")
    wanted = min(subject.vcpus, _MOST)
    return judged(
        disk.name,
        f"{wanted} queues for {subject.vcpus} vCPUs",
        f"{disk.queues} of {disk.driver}",
        f"{BLOCK}/{disk.name}/mq",
        holds=disk.queues >= wanted,
        # All requests then end on few CPUs, which shows under load only.
        otherwise=Level.WARNING,
        remedy="QEMU gives a queue for each vCPU from machine type 5.2 on: openstack "
        "image set --property hw_machine_type=TYPE IMAGE, and create the server "
        "anew; or nova-manage libvirt update_machine_type INSTANCE_UUID TYPE while it "
        "is stopped",
    )


def find_scheduler(subject: GuestSubject) -> Iterator[Finding]:
    """Look at the scheduler of each disk."""
    for disk in subject.disks:
        path = f"{BLOCK}/{disk.name}/queue/scheduler"
        if disk.driver not in _DRIVERS or not disk.scheduler:
            yield skipped(disk.name, "no virtual disk, or it was not read", path)
            continue
        yield judged(
            disk.name,
            "none or mq-deadline",
            disk.scheduler,
            path,
            holds=disk.scheduler in _SCHEDULERS,
            otherwise=Level.WARNING,
            remedy=f"echo none > {path}",
        )


CHECKS = (
    Check(60, "guest.disk_queues", "Each disk has a queue for each vCPU", find_queues),
    Check(
        65,
        "guest.disk_scheduler",
        "Disks are scheduled by who has them",
        find_scheduler,
    ),
)
