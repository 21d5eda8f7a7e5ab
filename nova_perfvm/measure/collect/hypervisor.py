# SPDX-License-Identifier: Apache-2.0
"""Turn a collected host into facts for comparison with Nova's view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from nova_perfvm import constants as const
from nova_perfvm.documents.config_file import SettingsError, settings_of
from nova_perfvm.facts.hypervisor import Hypervisor, RunningVM, Unread
from nova_perfvm.facts.snapshot import COLLECTED, ComputeHost, HostCell, Server
from nova_perfvm.generate.hosts.cpus import CPUSets
from nova_perfvm.measure import nova_conf, provider_config
from nova_perfvm.measure.checks import not_read
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect import reading
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed import domains, processes
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.observed.processes import Role
from nova_perfvm.policy import Policy

_PROVIDERS: Final = "/etc/nova/provider_config"
# The collector's reason for a directory missing on the host.
_ABSENT: Final = "no such file or directory"

T = TypeVar("T")


def load(
    path: str,
    policy: Policy | None = None,
    conf: str | None = None,
    refusal: Callable[[Mapping[str, str]], str] = provider_config.refusal_of,
) -> Hypervisor:
    """Read a file of ``host collect`` into facts.

    :param policy: says which VMs should own CPUs
    :param conf: path of the host's nova.conf, which is not collected
    :param refusal: passed to :func:`provider_config.read`
    :raises DocumentError: with all mistakes of the file
    :raises UnreadableFileError: when the file cannot be read
    :raises NovaConfError: when `conf` is no readable nova.conf of a compute host
    """
    found = reading.read(path, "host")
    if conf is not None:
        files = {**found.files, nova_conf.PATH: nova_conf.read(conf)}
        found = replace(found, files=files)
    return facts(found, policy, path, refusal)


def facts(
    collected: Collected,
    policy: Policy | None = None,
    source: str = "",
    refusal: Callable[[Mapping[str, str]], str] = provider_config.refusal_of,
) -> Hypervisor:
    """Return the facts of a collected host that Nova's view is compared with."""
    subject = HostSubject(collected, policy)
    vms: Mapping[str, RunningVM] = {}
    unread_vms: Mapping[str, Unread] = {}
    unlisted = sets = None
    try:
        sets = subject.cpu_sets
        vms = {domain.uuid: _vm(subject, domain) for domain in subject.domains}
        unread_vms = {
            uuid: _unread(exc) for uuid, exc in subject.unread_domains.items()
        }
    except NotReadError as exc:
        unlisted = _unread(exc)
    return Hypervisor(
        hostname=collected.hostname,
        taken_at=collected.taken_at,
        host=_read(lambda: _host(subject)),
        sets=sets.told if sets else None,
        vms=vms,
        unread_vms=unread_vms,
        files=_read(lambda: provider_config.read(_files(collected), refusal)),
        unlisted=unlisted,
        source=source,
        options=_options(collected),
        offline=subject.offline,
    )


def _options(collected: Collected) -> Mapping[tuple[str, str], str] | None:
    try:
        return settings_of(collected.files[nova_conf.PATH])
    except (KeyError, SettingsError):
        return None


def _read(look: Callable[[], T]) -> T | Unread:
    try:
        return look()
    except NotReadError as exc:
        return _unread(exc)


def _unread(exc: NotReadError) -> Unread:
    return Unread(exc.place, exc.reason, not_read.remedy(exc.reason))


def _host(subject: HostSubject) -> ComputeHost:
    topology, name = subject.topology, subject.collected.hostname
    sets = CPUSets(either=topology.cpus)
    cells = (
        HostCell(memory_mb=node.memory_mb or 0, **sets.cell(node))
        for node in topology.nodes
    )
    return ComputeHost(
        host=name,
        node=name,
        provider=name,
        service=name,
        shape=topology.shape,
        memory_mb=topology.memory_mb or 0,
        cells=tuple(cells),
        cells_source=COLLECTED,
    )


def _vm(subject: HostSubject, domain: Domain) -> RunningVM:
    threads, source = _read(lambda: _threads(subject, domain)), ""
    if not isinstance(threads, Unread):
        source = f"{subject.process_of(domain).path}/task/*/status"
    return RunningVM(
        domain=domain.name,
        server=_server(subject.collected.hostname, domain),
        pinned=subject.is_pinned(domain),
        pins=domain.pins,
        cpus=domain.pinned_cpus or domain.cpus,
        nodes=domain.memory.nodes if domain.memory else frozenset(),
        source=domain.source,
        threads=threads,
        threads_source=source,
        tuned=frozenset(one.tag for one in domain.xml.iterfind("cputune/*")),
        dirty_rate=domains.dirty_rate(subject.collected, domain.uuid),
    )


def _threads(subject: HostSubject, domain: Domain) -> Mapping[int, int]:
    """Return {vCPU: CPU} as the kernel allows; -1 for a vCPU with several CPUs."""
    process = subject.process_of(domain)
    tasks = process.of(Role.VCPU)
    if len(tasks) < domain.vcpus:
        reason = f"{len(tasks)} of {domain.vcpus} threads of vCPUs are seen"
        raise NotReadError(f"{process.path}/task", reason)
    allowed = {
        task.number: processes.allowed_cpus(subject.collected, task.path)
        for task in tasks
    }
    return {v: min(cpus) if len(cpus) == 1 else -1 for v, cpus in allowed.items()}


def _server(host: str, domain: Domain) -> Server:
    """Return a VM as a server, from Nova's metadata or else from libvirt's XML."""
    nova = domain.nova
    specs = dict(nova.extra_specs or {}) if nova else {}
    if domain.pins:
        specs.setdefault(const.CPU_POLICY, "dedicated")
    return Server(
        id=domain.uuid,
        name=nova.name if nova and nova.name else domain.name,
        host=host,
        status="ACTIVE",
        vcpus=domain.vcpus,
        extra_specs=specs,
        pinned=bool(domain.pins),
        node=host,
        flavor=nova.flavor if nova else "",
        memory_mb=domain.memory_kb // 1024,
        image=nova.image if nova else None,
        page_size_kb=min(domain.page_sizes_kb, default=0) or None,
    )


def _files(collected: Collected) -> Mapping[str, str]:
    """Return {path: text} of provider config files; empty if the host has none.

    :raises NotReadError: when a file was not read
    """
    for path, reason in collected.unread.items():
        if path.startswith(_PROVIDERS) and (path, reason) != (_PROVIDERS, _ABSENT):
            raise NotReadError(path, reason)
    files = collected.matching(f"{_PROVIDERS}/*.yaml")
    # A listing of the directory, or the reason why there is none.
    looked = {*collected.files, *collected.unread}
    if not files and _PROVIDERS not in looked:
        raise NotReadError(_PROVIDERS, "no provider config file was collected")
    return files
