# SPDX-License-Identifier: Apache-2.0
"""Virtual disks have a queue for each vCPU, and a cheap I/O scheduler."""

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Seen, check_each
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed.disks import BLOCK, VIRTIO, DiskDevice

# QEMU's VIRTIO_QUEUE_MAX is 1024; virtio-scsi needs two queues for control and events.
_MOST = 1022
# The storage backend orders requests itself; bfq and kyber cost CPU time per request.
_SCHEDULERS = ("none", "noop", "mq-deadline", "deadline")
_NO_RULE = "no virtio disk, or its driver was not read"


@check_each(
    60,
    "guest.disk_queues",
    lambda guest: guest.disks,
    source=f"{BLOCK}/{{}}/mq",
    remedy="take a machine type from 5.2 on: hw_machine_type of the image, and "
    "create the server anew; or nova-manage libvirt update_machine_type",
)
def disk_queues(guest: GuestSubject, disk: DiskDevice) -> Seen:
    """Each disk has a queue for each vCPU."""
    if disk.driver not in VIRTIO or not disk.queues:
        raise NotReadError(f"{BLOCK}/{disk.name}/mq", _NO_RULE)
    # With too few queues a few CPUs complete all requests, visible under load only.
    few = disk.queues < min(guest.vcpus, _MOST)
    shown = f"{disk.queues} of {disk.driver}, {guest.vcpus} vCPUs"
    yield Level.WARNING if few else Level.OK, shown


@check_each(
    65,
    "guest.disk_scheduler",
    lambda guest: guest.disks,
    source=f"{BLOCK}/{{}}/queue/scheduler",
    remedy=f"echo none > {BLOCK}/{{}}/queue/scheduler",
)
def disk_scheduler(_guest: GuestSubject, disk: DiskDevice) -> Seen:
    """Disks have the scheduler none or mq-deadline."""
    if disk.driver not in VIRTIO or not disk.scheduler:
        raise NotReadError(f"{BLOCK}/{disk.name}/queue/scheduler", _NO_RULE)
    # Old kernels call these noop and deadline.
    good = disk.scheduler in _SCHEDULERS
    yield Level.OK if good else Level.WARNING, disk.scheduler
