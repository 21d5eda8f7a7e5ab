# SPDX-License-Identifier: Apache-2.0
"""Generate a host's configuration from a request."""

from __future__ import annotations

from dataclasses import replace

from nova_perfvm.facts import NUMACell
from nova_perfvm.generate import host_options, labels, options
from nova_perfvm.generate.hosts import admission, remarks
from nova_perfvm.generate.hosts.config import HostConfig
from nova_perfvm.generate.hosts.cpus import CPUSets, divide_cpus
from nova_perfvm.generate.hosts.kernel import advise_kernel
from nova_perfvm.generate.hosts.memory import NodeMemory, divide_memory
from nova_perfvm.generate.hosts.nova_conf import affinities, nova_settings
from nova_perfvm.generate.hosts.provider import provider_document
from nova_perfvm.generate.hosts.request import HostRequest
from nova_perfvm.generate.hosts.topology import Topology
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.placement.settings import PLACEMENT, SCHEDULER
from nova_perfvm.rules.slots import host_slots


def generate(request: HostRequest, policy_file: str | None = None) -> HostConfig:
    """Return the configuration of one host.

    :param policy_file: path of the policy's file; None for the built-in policy
    :raises HostConfigError: when the request contradicts the policy or the host; the
        message has the remedy
    :raises PerfVMError: see :func:`.admission.pinned_classes`
    """
    admission.check_mode(request)
    admission.check_reserve(request)
    pinned = admission.pinned_classes(request)
    classes = admission.served_classes(request, pinned)
    iops = admission.iops_capacity(request, classes)
    cpus = divide_cpus(request, pinned)
    shares = divide_memory(request, cpus, classes)
    cells = _cells(request.topology, cpus, shares)
    # If the host's memory is unknown, count slots by CPUs alone.
    needed_mb = 0 if request.topology.memory_mb is None else None
    scheme, steers = host_scheme_of(request.policy), scheme_of(request.policy).steers
    room = {
        vm_class: scheme.usable_slots(
            request.policy, host_slots(vm_class, cells, needed_mb)
        )
        for vm_class in pinned
    }
    config = HostConfig(
        request=request,
        room=room,
        classes=classes,
        iops=iops,
        cpus=cpus,
        memory=shares,
        cells=cells,
        nova=(
            *nova_settings(cpus, shares, classes),
            *(affinities(request.topology, cpus) if steers else ()),
            *host_options.wanted(request.policy),
        ),
        provider=provider_document(request, room, iops),
        kernel=advise_kernel(request.topology, cpus, shares),
        scheduler=(
            *options.wanted(request.policy, SCHEDULER),
            *((options.POLICY,) if policy_file else ()),
        ),
        placement=options.wanted(request.policy, PLACEMENT),
    )
    return replace(
        config,
        warnings=tuple(remarks.warnings_of(config)),
        notes=tuple(remarks.notes_of(config)),
        label_commands=_label_commands(config),
    )


def _label_commands(config: HostConfig) -> tuple[str, ...]:
    """Return the commands that label the host; none if enrolled or not needed."""
    policy = config.request.policy
    several = len(policy.pinned_classes) > 1
    if (
        not (policy.managed_hosts == "labelled" or several)
        or scheme_of(policy).enrolls
        or not config.slots
    ):
        return ()
    return labels.label_commands(config.classes, ["HOST"])


def _cells(
    topology: Topology, cpus: CPUSets, shares: tuple[NodeMemory, ...]
) -> tuple[NUMACell, ...]:
    """Return the cells of the configured, empty host, without reserved memory.

    Nova counts a cell's whole memory, Placement counts the host's memory without
    reserved memory; a slot must fit both.  Unknown memory is 0.
    """
    return tuple(
        NUMACell(
            pinned_cpus=frozenset(),
            memory_mb=share.vms_mb or 0,
            memory_usage_mb=0,
            **cpus.cell(node),
        )
        for node, share in zip(topology.nodes, shares, strict=True)
    )
