# SPDX-License-Identifier: Apache-2.0
"""Propose a policy from a cloud's VMs and hosts, valid by ``policy check``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from nova_perfvm import constants as const
from nova_perfvm.diagnose.survey import flavors
from nova_perfvm.diagnose.survey.sizes import PinnedSize, most_common, pinned_sizes
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.generate.flavors import properties_of
from nova_perfvm.placement.host_schemes import scheme_counting
from nova_perfvm.placement.schemes import SCHEMES
from nova_perfvm.policy import (
    PAGE_SIZES_KB,
    Disk,
    FlavorSize,
    FlavorTemplate,
    HostShape,
    Policy,
    VMClass,
    largest_slots,
    loader,
    policy_mistakes,
    shape_slots,
)
from nova_perfvm.printable import number_of

_NAME: Final = "high-performance"
_PATTERN: Final = "hp.{vcpus}c.{memory_gb}g"
_GENERAL_PATTERN: Final = "g.{vcpus}c.{memory_gb}g"
# Its flavors are proposed if the cloud has no sizes to copy.
_GENERAL: Final = loader.load().default_class
# The most flavors of general VMs; beyond these no list is easy to read.
_MOST_SIZES: Final = 16
_ROOT_GB: Final = 20
# Keys of a class that are copied from flavors: (extra spec, allowed values).
_COPIED: Final = {
    "cpu_thread_policy": (const.CPU_THREAD_POLICY, {"prefer", "require", "isolate"}),
    "emulator_threads": (const.EMULATOR_THREADS, {"share", "isolate"}),
    "mem_page_size": (const.MEM_PAGE_SIZE, {"small", "large", *PAGE_SIZES_KB}),
}
# The scheme that lets pinned VMs of several sizes share hosts.
_MIXING: Final = next(scheme.name for scheme in SCHEMES.values() if scheme.mixes)
_PAGE_SIZES: Final = {str(size_kb): name for name, size_kb in PAGE_SIZES_KB.items()}


class ProposalError(PerfVMError):
    """No policy can be proposed for a cloud, or not for the given vCPUs."""


@dataclass(frozen=True)
class Proposal:
    """A proposed policy, and the reasons for its keys.

    :ivar why: for each key that follows from the cloud, the reason in one sentence
    :ivar left_out: VMs and extra specs of the cloud that the policy does not cover
    """

    policy: Policy
    why: Mapping[str, str]
    left_out: tuple[str, ...] = ()


def propose(snapshot: Snapshot, vcpus: int | None = None) -> Proposal:
    """Return a policy for a cloud, with a pinned class of each important size.

    :param vcpus: vCPUs of the only pinned class; None to choose sizes by the cloud's
        VMs, flavors or hosts
    :raises ProposalError: when no host shows its NUMA nodes, or no VM of the size fits
        a host
    """
    return _Proposer(snapshot).propose(vcpus)


class _Proposer:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._sizes = pinned_sizes(snapshot)
        self._why: dict[str, str] = {}
        self._left_out: list[str] = []

    def propose(self, vcpus: int | None) -> Proposal:
        shapes = self._shapes()
        size = self._size(shapes, vcpus)
        classes: tuple[VMClass, ...] = (self._class(size, shapes),)
        placement = self._placement()
        if not (vcpus or placement):
            classes = self._mixed(classes[0], shapes)
        policy = Policy(
            host_shapes=shapes,
            placement=placement or (_MIXING if len(classes) > 1 else Policy.placement),
            classes=(*classes, self._general()),
        )
        policy = self._managed(self._named(policy))
        if found := policy_mistakes(policy):
            raise ProposalError(f"cannot propose a policy for this cloud: {found[0]}")
        policy = self._copied(policy, size)
        self._others(policy, size)
        return Proposal(policy, self._why, tuple(self._left_out))

    def _mixed(
        self, largest: VMClass, shapes: tuple[HostShape, ...]
    ) -> tuple[VMClass, ...]:
        """Return a class for each size that owns at least a tenth of the pinned CPUs.

        Only `largest` if VMs of one size own two thirds of the pinned CPUs, or if hosts
        are divided between pinned and unpinned VMs.
        """
        owned = sum(size.cpus for size in self._sizes)
        sizes = [s for s in self._sizes if s.servers and 10 * s.cpus >= owned]
        placed = [one for size in sizes if (one := _placed(size, shapes))]
        alone = any(3 * size.cpus >= 2 * owned for size in sizes)
        if alone or len(placed) < max(2, len(sizes)) or largest.exclusive == "cell":
            return (largest,)
        whole = all(one.smt == "cores" for one in placed)
        found = []
        for size, vm_class in zip(sizes, placed, strict=True):
            own = f"pinned-{size.vcpus}"
            found.append(
                replace(
                    vm_class,
                    name=_NAME if size.vcpus == largest.vcpus else own,
                    smt="cores" if whole else "threads",
                    vif_multiqueue=True,
                    disk=self._disk(size),
                    flavors=self._flavors(size, vm_class),
                )
            )
        del self._why["max_per_host"]
        self._why["vcpus"] = "each size that owns a tenth of all pinned CPUs"
        self._why["exclusive"] = "VMs of all these sizes share hosts"
        self._why["placement"] = (
            f"pinned VMs have {', '.join(str(size.vcpus) for size in sizes)} vCPUs: "
            "each NUMA node counts its CPUs, so that no host is offered that cannot "
            "take the VM"
        )
        return tuple(found)

    def _shapes(self) -> tuple[HostShape, ...]:
        """Return the hosts' shapes, the most common first."""
        hosts = self._snapshot.hosts
        found = Counter(host.shape for host in hosts if host.shape)
        what = "the shapes that hosts show"
        if not found:
            # Capacity still counts the real nodes.
            what = "the largest NUMA node of each host, taken for all of its nodes"
            cores = [(host.cores, host.threads) for host in hosts if any(host.cores)]
            found = Counter(HostShape(len(c), max(c), n) for c, n in cores)
        if not found:
            raise ProposalError(
                "no host shows its NUMA nodes, so that no policy can be proposed: "
                "read the hypervisors as an administrator does, or collect on the "
                "hosts (nova-perfvm host collect) and name the files with --collected"
            )
        shapes = sorted(found, key=lambda shape: (-found[shape], shape))
        self._why["host_shape"] = f"{what}: " + ", ".join(
            f"{found[shape]} of {shape}" for shape in shapes
        )
        return tuple(shapes)

    def _size(self, shapes: tuple[HostShape, ...], vcpus: int | None) -> PinnedSize:
        """Return the size of the pinned class."""
        if vcpus is not None:
            self._why["vcpus"] = "as asked for"
            mine = (size for size in self._sizes if size.vcpus == vcpus)
            return next(mine, PinnedSize(vcpus))
        all_cpus = sum(size.cpus for size in self._sizes)
        for size in self._sizes:
            # A size with fewer of the CPUs does not justify a policy.
            if 10 * size.cpus >= all_cpus and _placed(size, shapes) is not None:
                self._why["vcpus"] = (
                    f"owned by {number_of(len(size.servers), 'VM')} on "
                    f"{number_of(size.hosts, 'host')}: the largest size with a tenth "
                    "of all pinned CPUs, or else of a pinned flavor"
                )
                return size
        self._why["vcpus"] = (
            "no VM and no flavor owns CPUs: a whole NUMA node (--vcpus)"
        )
        return PinnedSize(shapes[0].cores)

    def _class(self, size: PinnedSize, shapes: tuple[HostShape, ...]) -> VMClass:
        vm_class = _placed(size, shapes)
        if vm_class is None:
            raise ProposalError(
                f"no host of {', '.join(map(str, shapes))} has room for a VM of "
                f"{size.vcpus} pinned vCPUs: name another size with --vcpus"
            )
        if vm_class.smt == "threads":
            self._why["smt"] = "no NUMA node has as many cores as a VM has vCPUs"
        self._why["max_per_host"] = "as many as the largest shape has slots"
        return replace(
            vm_class,
            max_per_host=largest_slots((vm_class,), shapes),
            exclusive=self._exclusive(size),
            vif_multiqueue=True,
            disk=self._disk(size),
            flavors=self._flavors(size, vm_class),
        )

    def _exclusive(self, size: PinnedSize) -> Literal["host", "cell"]:
        """Return ``cell`` if most VMs of the size are on hosts with both pools."""
        modes = {
            host.host: provider.mode
            for host in self._snapshot.hosts
            if (provider := self._snapshot.provider_by_uuid.get(host.provider))
        }
        if most_common(modes.get(s.host or "") for s in size.servers) == "mixed":
            self._why["exclusive"] = "most are on hosts with CPUs of both kinds"
            return "cell"
        self._why["exclusive"] = "this keeps other VMs off their caches and memory"
        return "host"

    def _disk(self, size: PinnedSize) -> Disk:
        volumes = flavors.from_volumes(size.servers, size.flavors)
        self._why["disk"] = (
            f"{sum(volumes)} of {len(volumes)} boot from a volume"
            if volumes
            else "each VM has a volume of its own, not a part of the host's disk"
        )
        if 2 * sum(volumes) < len(volumes):
            return Disk("image")
        found = flavors.volume_type(self._snapshot, size.servers)
        known = ", ".join(self._snapshot.volume_types or ()) or "none seen"
        self._why["volume_type"] = (
            "of the root volumes of these VMs, or the only type in Cinder"
            if found
            else f"yours to choose (null: Cinder's default), of Cinder's types: {known}"
        )
        return Disk("volume", found)

    def _flavors(self, size: PinnedSize, vm_class: VMClass) -> FlavorTemplate:
        """Return flavors with the memory sizes of today's VMs and flavors, or hosts."""
        image = self._disk(size).source == "image"
        self._why["flavors"] = "the sizes of memory that VMs and flavors have"
        sizes = []
        for found in flavors.sizes_of([*size.servers, *size.flavors], image=image):
            if fault := vm_class.memory_fault(found.memory_gb):
                self._left_out.append(f"a flavor of {fault}")
            else:
                sizes.append(found)
        if not sizes:
            self._why["flavors"] = "a slot's memory on most hosts, and parts of it"
            memory_gb = flavors.memory_of_hosts(vm_class, self._snapshot.hosts)
            root_gb = _ROOT_GB if image else 0
            sizes = [FlavorSize(size.vcpus, gb, root_gb) for gb in memory_gb]
        return flavors.template(_PATTERN, sizes)

    def _general(self) -> VMClass:
        """Return the class of VMs that share CPUs, with the sizes that are in use."""
        servers = [s for s in self._snapshot.servers if s.host and not s.owns_cpus]
        others = [
            flavor
            for flavor in self._snapshot.flavors
            if flavor.extra_specs.get(const.CPU_POLICY) != "dedicated"
        ]
        if ours := [f for f in others if const.CLASS_KEY in f.extra_specs]:
            # The cloud has the flavors of a policy already.
            servers, others = [], ours
        volumes = flavors.from_volumes(servers, others)
        image = 2 * sum(volumes) <= len(volumes)
        used = flavors.sizes_of(servers or others, image=image)
        if not used:
            self._why["general"] = (
                "no VM or flavor shows sizes: sizes of the built-in policy"
            )
            return _GENERAL
        self._why["general"] = (
            f"sizes of {'VMs' if servers else 'flavors'} that share CPUs"
        )
        if len(used) > _MOST_SIZES:
            self._left_out.append(
                f"{len(used) - _MOST_SIZES} sizes that fewer general VMs have"
            )
        return replace(
            _GENERAL,
            disk=Disk("image" if image else "volume"),
            flavors=flavors.template(
                _GENERAL_PATTERN, [size for size, _ in used.most_common(_MOST_SIZES)]
            ),
        )

    def _placement(self) -> Any:
        """Return the scheme whose resource class Placement has; None without one."""
        names = {name for p in self._snapshot.providers for name in p.inventories}
        found = scheme_counting(names)
        self._why["placement"] = (
            f"Placement has {found.scheme.resource_class} of hosts already"
            if found
            else "Placement counts the VMs of each host, so that two schedulers at "
            "once, or a forced host, cannot break the guarantees"
        )
        return found.scheme.name if found else None

    def _named(self, policy: Policy) -> Policy:
        """Give pinned classes the names that flavors say, where these are allowed."""
        said = {size.vcpus: size.said(const.CLASS_KEY) for size in self._sizes}
        names = {c.name: said.get(c.vcpus or 0) for c in policy.pinned_classes}
        taken = Counter([*policy.by_name, *names.values()])
        for own, name in names.items():
            # Classes with equal names overwrite each other in the policy file.
            if name is None or taken[name] > 1:
                continue
            classes = (
                replace(c, name=name) if c.name == own else c for c in policy.classes
            )
            named = replace(policy, classes=tuple(classes))
            if not policy_mistakes(named):
                policy = named
        return policy

    def _managed(self, policy: Policy) -> Policy:
        """Let the policy judge all hosts, unless VMs of none of its classes run."""
        if all(
            server.host is None
            or server.extra_specs.get(const.CLASS_KEY) in policy.by_name
            for server in self._snapshot.servers
        ):
            self._why["managed_hosts"] = "no VM runs here that the filter could disturb"
            return replace(policy, managed_hosts="all")
        self._why["managed_hosts"] = (
            "VMs run here whose flavors name no class of this policy: only hosts that "
            "you label are judged, and all else goes on as before"
        )
        return replace(policy, managed_hosts="labelled")

    def _copied(self, policy: Policy, size: PinnedSize) -> Policy:
        """Copy keys from flavors to the class if they do not contradict other keys."""
        for key, (spec, values) in _COPIED.items():
            said = size.said(spec) or ""
            value = _PAGE_SIZES.get(said, said)
            if value not in values:
                continue
            changes: dict[str, Any] = {key: value}
            changed = replace(
                policy,
                classes=tuple(
                    replace(c, **changes) if c.pinned else c for c in policy.classes
                ),
            )
            if found := policy_mistakes(changed):
                self._left_out.append(f"{key}: {found[0].message}")
            else:
                policy = changed
                self._why[key] = f"flavors say {spec}={said}"
        return policy

    def _others(self, policy: Policy, chosen: PinnedSize) -> None:
        """Note the pinned VMs and extra specs that the policy does not cover."""
        sizes = {vm_class.vcpus for vm_class in policy.pinned_classes}
        for size in self._sizes:
            if size.servers and size.vcpus not in sizes:
                self._left_out.append(
                    f"{number_of(len(size.servers), 'pinned VM')} of {size.vcpus} "
                    f"vCPUs on {number_of(size.hosts, 'host')}, of flavors "
                    f"{', '.join(size.flavor_names)}: they stay as they are on hosts "
                    f"without a label (--vcpus {size.vcpus} makes the policy for them)"
                )
        keys = {key for specs in chosen.extra_specs for key in specs}
        keys -= {spec for spec, _ in _COPIED.values()}
        keys -= properties_of(policy, policy.classes[0]).flavor.keys()
        if keys:
            self._left_out.append(
                f"extra specs of today's flavors, {', '.join(sorted(keys))}: new "
                "flavors are made without them; add what you need to these "
                "(an extension of nova_perfvm.properties)"
            )


def _placed(size: PinnedSize, shapes: tuple[HostShape, ...]) -> VMClass | None:
    """Return a class of a size that fits a host of some shape; else None."""
    most = max(shape.cells for shape in shapes)
    wanted = [size.cells] if size.servers else range(1, most + 1)
    for smt in ("cores", "threads"):
        for cells in wanted:
            vm_class = VMClass(
                _NAME,
                vcpus=size.vcpus,
                cpu_policy="dedicated",
                smt="threads" if smt == "threads" else "cores",
                numa_nodes=cells,
            )
            split = size.vcpus % cells == 0
            if split and any(shape_slots(vm_class, shape) for shape in shapes):
                return vm_class
    return None
