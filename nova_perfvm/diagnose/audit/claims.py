# SPDX-License-Identifier: Apache-2.0
"""Check that servers and flavors match the class that they claim."""

import difflib
import functools
from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose import moves
from nova_perfvm.diagnose.audit.images import code_for
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.facts import HostFacts
from nova_perfvm.facts.snapshot import Flavor, Server
from nova_perfvm.findings import Finding
from nova_perfvm.generate import flavors as generating
from nova_perfvm.generate.flavors import PolicyFlavor
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import VMClass
from nova_perfvm.printable import one_line
from nova_perfvm.rules import REFUSALS, check_placed, describe, is_former_size
from nova_perfvm.rules.request.contract import CODES
from nova_perfvm.rules.request.cpus import CPU_POLICY, NUMA_NODES

_WEIGHT_KEY: Final = "perfvm_weight_multiplier"
_KNOWN_KEYS: Final = frozenset(
    {
        *(const.CLASS_KEY, const.CREATED_BY_KEY, const.IMAGE_RECORD, _WEIGHT_KEY),
        *(const.POLICY_KEY, const.POLICY_NAME_KEY, const.POLICY_AT_KEY),
    }
)
# Two keys at least this similar are taken for one key, misspelled.
_ALIKE: Final = 0.8


def check_servers(subject: Subject) -> Iterator[Finding]:
    """Judge each server that was ever on a host by the flavor embedded in it."""
    policy = subject.policy
    for server in subject.snapshot.servers:
        if not server.built or not server.known:
            continue
        request = subject.requests[server.id]
        reasons = list(subject.check_request(request))
        if server.host is not None:
            # The labels of a host are known even if the host itself was not read.
            facts = subject.hosts.get(server.host) or HostFacts(
                server.host,
                server.host,
                (),
                labels=subject.snapshot.labels(server.host),
            )
            reasons += check_placed(policy, request, facts)
        where = f"on {server.host or 'no host'}"
        for reason in reasons:
            if not _found_by_another_check(subject, server, reason.code):
                refusal = REFUSALS[reason.code]
                remedy = _remedy(subject, server, refusal.remedy)
                words = f"{where}: {describe(reason)}"
                yield Finding.of(refusal.audit, str(server), words, remedy)
        if is_former_size(policy, request):
            vm_class = policy.get_class(request.class_name or "")
            words = (
                f"{where}: it has {request.vcpus} vCPUs, a former size of class "
                f"{vm_class.name}, which has {vm_class.vcpus} now: "
                + ("" if subject.check_request(request) else "it can be moved, and ")
                + "no new VM gets that size"
            )
            remedy = subject.resize(server)
            yield Finding.of(codes.FORMER_SIZE, str(server), words, remedy)


def _remedy(subject: Subject, server: Server, kind: str) -> str:
    """Return the commands after which the rule accepts the server."""
    if kind == "migrate":
        return subject.leave(server)
    if kind == "rebuild" and not subject.is_stranded(server):
        return moves.rebuild(server.id, server.status)
    return subject.resize(server)


def _found_by_another_check(subject: Subject, server: Server, code: str) -> bool:
    """Return whether another check reports the fault, from pinning or Placement."""
    vm_class = subject.class_of(server)
    if not subject.managed(server.host or ""):
        return False
    if code in CODES:
        # Other checks report a stranded slot, and a flavor without units.
        return vm_class is None or scheme_of(subject.policy).enrolls
    if vm_class is None or not vm_class.pinned:
        return False
    if code == NUMA_NODES.code:
        return len(server.pinned_nodes) not in {0, vm_class.cells_per_vm}
    return code == CPU_POLICY.code and not server.pinned_cpus


def check_changed(subject: Subject) -> Iterator[Finding]:
    """List servers whose embedded flavor differs from today's flavor of that name."""
    listed = {flavor.name for flavor in subject.flavors}
    for server in subject.snapshot.servers:
        flavor = subject.flavors_today.get(server.flavor)
        if flavor is None or server.host is None:
            continue
        embedded = _sizes(server) | dict(server.extra_specs)
        current = _sizes(flavor) | dict(flavor.extra_specs)
        changed = _differences(embedded, current, "{} was {}, is {}")
        # Nova refuses a resize to the server's own flavor, and a changed flavor of the
        # same sizes has the same ID.
        another = "FLAVOR" if _sizes(server) == _sizes(flavor) else quote(flavor.id)
        if changed:
            yield Finding.of(
                codes.FLAVOR_CHANGED,
                str(server),
                f"on {server.host}: flavor {flavor.name} was changed: "
                f"{', '.join(changed)}",
                # A flavor that the policy does not list has no class: its owner wants
                # today's flavor.
                subject.resize(server)
                if flavor.name in listed
                else moves.resize(server.id, server.status, another),
            )


def _sizes(value: Server | Flavor) -> dict[str, object]:
    return {"vcpus": value.vcpus, "ram": value.memory_mb, "disk": value.disk_gb}


def _differences(
    one: Mapping[str, object], other: Mapping[str, object], words: str
) -> list[str]:
    none = "(not set)"
    return [
        words.format(key, one.get(key, none), other.get(key, none))
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    ]


def check_flavors(subject: Subject) -> Iterator[Finding]:
    """Compare the cloud's flavors of a class with those that the policy generates."""
    for flavor in subject.snapshot.flavors:
        claimed = flavor.extra_specs.get(const.CLASS_KEY)
        if claimed is not None and claimed not in subject.policy.by_name:
            yield Finding.of(
                codes.CLASS_UNKNOWN,
                f"flavor {flavor.name}",
                f"{const.CLASS_KEY}={claimed}; the policy has "
                f"{', '.join(sorted(subject.policy.by_name))}",
                f"openstack flavor set --property {const.CLASS_KEY}=CLASS "
                f"{quote(flavor.id)}",
            )
            continue
        like = [one for one in subject.flavors if flavor.name.endswith(one.name)]
        # Flavor 12c.4g also ends with the name 2c.4g.
        listed = max(like, key=lambda one: len(one.name), default=None)
        name = claimed
        if listed and listed.name == flavor.name:
            name = claimed or listed.class_name
        if name is None:
            continue
        differs = _best(subject, subject.policy.by_name[name], flavor, listed)
        if differs:
            yield Finding.of(
                codes.FLAVOR_DIFFERS,
                f"flavor {flavor.name}",
                f"not as class {name} is: {', '.join(differs)}",
                _as_the_policy_has_it(flavor, listed),
            )


def _as_the_policy_has_it(flavor: Flavor, listed: PolicyFlavor | None) -> str:
    """Return the command that corrects a flavor, or deletes an unlisted one.

    :param listed: the policy's flavor of that name, a prefix aside
    """
    if listed is None:
        # ``flavor sync`` leaves flavors alone that the policy does not list.
        return f"openstack flavor delete {quote(flavor.id)}"
    prefix = flavor.name.removesuffix(listed.name)
    option = f" --prefix {quote(prefix)}" if prefix else ""
    return f"openstack perfvm flavor sync{option}"


def _best(
    subject: Subject, vm_class: VMClass, flavor: Flavor, listed: PolicyFlavor | None
) -> list[str]:
    """Return the differences from the nearest variant that the policy generates."""
    variants = [False, True] if scheme_of(subject.policy).isolates else [False]
    found = []
    for isolated in variants:
        expected: dict[str, object] = dict(
            generating.properties_of(
                subject.policy,
                vm_class,
                memory_mb=flavor.memory_mb,
                isolated_aggregates=isolated,
                extra_specs=listed.own_specs if listed else None,
            ).flavor
        )
        # The operator's own keys do not contradict the policy.
        mine: dict[str, object] = {
            key: value
            for key, value in flavor.extra_specs.items()
            if key in expected or vm_class.refusal(key)
        }
        if vm_class.vcpus is not None:
            mine["vcpus"], expected["vcpus"] = flavor.vcpus, vm_class.vcpus
        found.append(_differences(mine, expected, "{} is {}, should be {}"))
    return min(found, key=len)


def check_spelling(subject: Subject) -> Iterator[Finding]:
    """List keys that look like a misspelled key of nova_perfvm."""
    snapshot = subject.snapshot
    for what, uuid, name, values in (
        *(("flavor", f.id, f.name, f.extra_specs) for f in snapshot.flavors),
        *(("aggregate", str(a.id), a.name, a.metadata) for a in snapshot.aggregates),
    ):
        for key in filter(_is_near, values):
            meant = quote(f"{const.CLASS_KEY}={values[key]}")
            yield _near_miss(
                f"{what} {name}",
                key,
                f"openstack {what} unset --property {quote(key)} {quote(uuid)}\n"
                f"openstack {what} set --property {meant} {quote(uuid)}",
            )
    for server in snapshot.servers:
        for key in filter(_is_near, server.extra_specs):
            yield _near_miss(str(server), key, subject.resize(server))
    for image in snapshot.images or ():
        for key in filter(_is_near, image.properties):
            remedy = f"openstack image unset --property {quote(key)} {image.id}"
            code = code_for(subject, image, codes.NEAR_MISS)
            yield _near_miss(f"image {image.title}", key, remedy, code)


def _near_miss(
    subject: str, key: str, remedy: str, code: str = codes.NEAR_MISS
) -> Finding:
    words = (
        f"its key {one_line(key)} means nothing: a class is named by "
        f"{const.CLASS_KEY}, on flavors and aggregates only"
    )
    return Finding.of(code, subject, words, remedy)


@functools.cache
def _is_near(key: str) -> bool:
    """Return whether a key looks like a misspelling of the class key."""
    if key in _KNOWN_KEYS:
        return False
    plain = key.lower().replace("_", ":")
    if plain.startswith(f"{const.NAMESPACE}:"):
        return True
    matcher = difflib.SequenceMatcher(None, const.CLASS_KEY, plain)
    # quick_ratio is an upper bound of ratio, and cheap.
    return matcher.quick_ratio() >= _ALIKE and matcher.ratio() >= _ALIKE
