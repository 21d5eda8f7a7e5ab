# SPDX-License-Identifier: Apache-2.0
"""Check that Placement has what each host's provider config files declare.

nova-compute adds the files' inventories and traits to Placement.  Traits that were
removed from a file stay in Placement.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit import hypervisors
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.facts.hypervisor import ProviderEntry, ProviderFiles, Unread
from nova_perfvm.facts.snapshot import Provider
from nova_perfvm.findings import Finding
from nova_perfvm.placement.commands import remove_trait

# Operators may set the IOPS of disks otherwise; units are made by enrolling, not by a
# file.
_NOT_JUDGED: Final = {const.RC_READ_IOPS, const.RC_WRITE_IOPS, *const.CHILD_CLASSES}
_NOTHING: Final = ProviderEntry({}, frozenset())
_ENROLLED: Final = (const.TRAIT_ELASTIC, const.TRAIT_CHILD, const.TRAIT_CELLS)


def check(subject: Subject) -> Iterator[Finding]:
    """Compare Placement with the files of each host on which data was collected."""
    nodes = {host.host: host.provider for host in subject.snapshot.hosts}
    for host, seen in subject.hypervisors.items():
        root = subject.snapshot.provider_by_uuid.get(nodes[host])
        if isinstance(seen.files, Unread):
            yield hypervisors.unread(host, seen.files)
        elif seen.files.refused:
            yield _refused(host, seen.files, seen.files.refused)
        elif root is None:
            yield hypervisors.unknown(
                host, "Placement lacks a provider for the host", "Placement"
            )
        else:
            for provider in subject.snapshot.trees.get(root.uuid, (root,)):
                yield from _compared(host, provider, seen.files, root=provider is root)


def _refused(host: str, files: ProviderFiles, why: str) -> Finding:
    return Finding.of(
        codes.PROVIDER_FILES_REFUSED,
        host,
        f"nova-compute refuses the host's files: {why}",
        "mend the file, or write it anew (nova-perfvm host config); then systemctl "
        "restart nova-compute on the host",
        source=files.source,
    )


def _compared(
    host: str, provider: Provider, files: ProviderFiles, *, root: bool
) -> Iterator[Finding]:
    # nova.compute.resource_tracker, _merge_provider_configs
    keys = [key for key in (provider.name, provider.uuid) if key in files.entries]
    if len(keys) > 1:
        why = f"both name {keys[0]} and uuid {keys[1]} specify the same provider"
        yield _refused(host, files, why)
        return
    if not (keys or root):
        return
    entry = files.entries.get(keys[0] if keys else "$COMPUTE_NODE", _NOTHING)
    wanted = _offer(entry.totals, entry.traits)
    totals = {name: one.total for name, one in provider.inventories.items()}
    found = _offer(totals, provider.traits)
    if not root:
        # Children have other inventories and traits from enrolling or other services.
        found &= wanted
    if found == wanted:
        return
    stale = sorted(found & provider.traits - wanted)
    shown = "Placement" if root else f"{provider.name} in Placement"
    yield Finding.of(
        codes.PROVIDER_FILES_DIFFER,
        host,
        f"{shown} has {_words(found)}; the host's files say {_words(wanted)}",
        "\n".join(remove_trait(provider.uuid, trait) for trait in stale)
        or "systemctl restart nova-compute on the host, which reads the files; then "
        "read its log",
        source=files.source or "no file in its provider_config",
    )


def _offer(totals: Mapping[str, int], traits: Iterable[str]) -> frozenset[str]:
    """Return nova_perfvm's traits, and its resource classes with their totals."""
    offered = [f"{name} {n}" for name, n in totals.items() if name not in _NOT_JUDGED]
    offered += [trait for trait in traits if not trait.startswith(_ENROLLED)]
    return frozenset(n for n in offered if n.startswith(const.CUSTOM_PREFIX))


def _words(offer: frozenset[str]) -> str:
    return ", ".join(sorted(offer)) or "nothing"
