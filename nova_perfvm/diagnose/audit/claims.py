# SPDX-License-Identifier: Apache-2.0
"""Whether servers, flavors and images are what they claim to be."""

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from shlex import quote
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose import moves
from nova_perfvm.diagnose.audit.subject import ANEW, Subject
from nova_perfvm.facts import HostFacts, Reason, RequestFacts
from nova_perfvm.facts.snapshot import Flavor, Image, Server
from nova_perfvm.findings import Finding, Level
from nova_perfvm.generate import flavors as generating
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.printable import one_line
from nova_perfvm.rules import (
    REFUSALS,
    check_placed,
    check_request,
    describe,
    is_former_size,
)
from nova_perfvm.rules.request.contract import CODES
from nova_perfvm.rules.request.cpu_policy import CPU_POLICY
from nova_perfvm.rules.request.numa_nodes import NUMA_NODES

_WEIGHT_KEY: Final = "perfvm_weight_multiplier"
_KNOWN_KEYS: Final = frozenset(
    {
        *(const.CLASS_KEY, const.CREATED_BY_KEY, const.IMAGE_RECORD, _WEIGHT_KEY),
        *(const.POLICY_KEY, const.POLICY_NAME_KEY, const.POLICY_AT_KEY),
    }
)
# Names that are so alike are the same name, spelled wrongly.
_ALIKE: Final = 0.8
# Extra specs that a class decides, so that another value is no extension of it.
_DECIDED: Final = (
    "hw:cpu_",
    "hw:emulator_threads",
    "hw:numa_nodes",
    "hw:mem_page_size",
    "trait:CUSTOM_PERFVM_",
    "trait_perfvm",
    "resources_perfvm",
    "resources:CUSTOM_PERFVM_",
)


def check_servers(subject: Subject) -> Iterator[Finding]:
    """Judge each server that is on a host by the flavor embedded in it."""
    for server in subject.snapshot.servers:
        if server.host is None:
            continue
        request = subject.requests[server.id]
        yield from _one_a_remedy(
            subject.policy.accept,
            (
                _finding(subject, server, reason)
                for reason in check_request(subject.policy, request)
                if not _found_by_another_check(subject, server, reason.code)
            ),
        )
        if is_former_size(subject.policy, request):
            yield Finding.of(
                codes.FORMER_SIZE,
                str(server),
                f"on {server.host}: {former_size(subject.policy, request)}",
                subject.resize(server),
            )
        yield from _places(subject, server)


def _one_a_remedy(
    accept: Collection[str], found: Iterable[Finding]
) -> Iterable[Finding]:
    """Join what is wrong with a server and ends by the same commands.

    The code is that of the first of what is worst.  What the policy accepts is not
    joined with what it does not.
    """
    order = list(Level)
    joined: dict[tuple[str, bool], Finding] = {}
    for finding in sorted(found, key=lambda f: -order.index(f.level)):
        key = (finding.remedy, finding.code in accept)
        first = joined.setdefault(key, finding)
        if first is not finding:
            _, _, words = finding.observed.partition(": ")
            joined[key] = first._replace(observed=f"{first.observed}; {words}")
    return joined.values()


def former_size(policy: Policy, request: RequestFacts) -> str:
    """Say that a server that runs has a former size of its class."""
    vm_class = policy.get_class(request.class_name or "")
    return (
        f"it has {request.vcpus} vCPUs, a former size of class {vm_class.name}, which "
        f"has {vm_class.vcpus} now: it can be moved, and no new one gets that size"
    )


def _found_by_another_check(subject: Subject, server: Server, code: str) -> bool:
    """Return whether another check says it, with what the server really owns."""
    vm_class = subject.class_of(server)
    if not subject.managed(server.host or ""):
        return False
    contracted = code in CODES
    if vm_class is None or (contracted and scheme_of(subject.policy).enrolls):
        # It strands a slot, or its flavor is without units: that is said.
        return contracted
    if not vm_class.pinned:
        return False
    if code == NUMA_NODES.code:
        nodes = {cell.host_node for cell in server.cells or () if cell.cpu_pinning}
        return len(nodes - {None}) not in {0, vm_class.cells_per_vm}
    return code == CPU_POLICY.code and not server.pinned_cpus


def _places(subject: Subject, server: Server) -> Iterator[Finding]:
    """Judge whether a server is where its class may be."""
    host = server.host or ""
    facts = subject.hosts.get(host) or HostFacts(
        host, host, (), labels=subject.snapshot.labels(host)
    )
    for reason in check_placed(subject.policy, subject.requests[server.id], facts):
        yield _finding(subject, server, reason)


def _finding(subject: Subject, server: Server, reason: Reason) -> Finding:
    """Return what a rule has against a server that runs, as the rule says it."""
    refusal = REFUSALS[reason.code]
    remedies: dict[str, Callable[[], str]] = {
        "resize": lambda: subject.resize(server),
        "migrate": lambda: moves.migrate(server.id, server.status),
        "rebuild": lambda: moves.rebuild(server.id, server.status),
    }
    return Finding.of(
        refusal.audit,
        str(server),
        f"on {server.host}: {describe(reason)}",
        remedies[refusal.remedy](),
    )


def check_changed(subject: Subject) -> Iterator[Finding]:
    """List servers whose flavor is not the flavor of that name any more."""
    for server in subject.snapshot.servers:
        flavor = subject.flavors_today.get(server.flavor)
        if flavor is None or server.host is None:
            continue
        changed = _differences(_sizes(server) | dict(server.extra_specs), flavor)
        if changed:
            yield Finding.of(
                codes.FLAVOR_CHANGED,
                str(server),
                f"on {server.host}: flavor {flavor.name} was changed: "
                f"{', '.join(changed)}",
                _to_today(subject, server, flavor),
            )


def _to_today(subject: Subject, server: Server, flavor: Flavor) -> str:
    """Return the commands that make a server what its flavor is today."""
    if not subject.changed_in_place(server):
        return moves.resize(server.id, server.status, quote(flavor.id))
    name = quote(ANEW + flavor.name)
    # Which projects may use a private one is not looked at.
    access = "" if flavor.public else " --private --project PROJECT"
    size = f"--vcpus {flavor.vcpus} --ram {flavor.memory_mb} --disk {flavor.disk_gb}"
    create = f"openstack flavor create {size}{access} {name}"
    # Other servers have the same remedy: it may be there.
    commands = [f"openstack flavor show {name} >/dev/null 2>&1 || {create}"]
    specs = "".join(
        f" --property {quote(f'{key}={value}')}"
        for key, value in sorted(flavor.extra_specs.items())
    )
    if specs:
        commands.append(f"openstack flavor set{specs} {name}")
    commands.append(moves.resize(server.id, server.status, name))
    return "\n".join(commands)


def _sizes(value: Server | Flavor) -> dict[str, object]:
    return {"vcpus": value.vcpus, "ram": value.memory_mb, "disk": value.disk_gb}


def _differences(embedded: Mapping[str, object], flavor: Flavor) -> list[str]:
    current = _sizes(flavor) | dict(flavor.extra_specs)
    none = "(not set)"
    return [
        f"{key} was {embedded.get(key, none)}, is {current.get(key, none)}"
        for key in sorted(embedded.keys() | current.keys())
        if embedded.get(key) != current.get(key)
    ]


def check_flavors(subject: Subject) -> Iterator[Finding]:
    """Compare the cloud's flavors of a class with what the policy makes."""
    names = {flavor.name: flavor.class_name for flavor in subject.flavors}
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
        name = claimed or names.get(flavor.name)
        if name is None:
            continue
        differs = _best(subject, subject.policy.by_name[name], flavor)
        if differs:
            yield Finding.of(
                codes.FLAVOR_DIFFERS,
                f"flavor {flavor.name}",
                f"not as class {name} is: {', '.join(differs)}",
                _mended(flavor, names),
            )


def _mended(flavor: Flavor, names: Iterable[str]) -> str:
    """Return the command after which no flavor of a class is unlike it.

    What the policy does not list is not synced.  Servers keep the flavor that they
    were made with.

    :param names: the flavors that the policy lists
    """
    for name in names:
        if flavor.name.endswith(name):
            prefix = flavor.name.removesuffix(name)
            option = f" --prefix {quote(prefix)}" if prefix else ""
            return f"openstack perfvm flavor sync{option}"
    return f"openstack flavor delete {quote(flavor.id)}"


def _best(subject: Subject, vm_class: VMClass, flavor: Flavor) -> list[str]:
    """Return the differences from the nearest of what the policy could make."""
    variants = [False, True] if scheme_of(subject.policy).isolates else [False]
    found = []
    for isolated in variants:
        expected = generating.properties_of(
            subject.policy,
            vm_class,
            subject.generators,
            isolated_aggregates=isolated,
        ).flavor
        differs = [
            f"{key} is {flavor.extra_specs.get(key, '(not set)')}, should be {value}"
            for key, value in sorted(expected.items())
            if flavor.extra_specs.get(key) != value
        ]
        differs += [
            f"{key} is {value}, should not be set"
            for key, value in sorted(flavor.extra_specs.items())
            if key not in expected and key.startswith(_DECIDED)
        ]
        if vm_class.vcpus is not None and flavor.vcpus != vm_class.vcpus:
            differs.append(f"{flavor.vcpus} vCPUs, should be {vm_class.vcpus}")
        found.append(differs)
    return min(found, key=len)


def check_images(subject: Subject) -> Iterator[Finding]:
    """List images that say the contrary of what a class wants."""
    if not any(vm_class.vif_multiqueue for vm_class in subject.policy.classes):
        return
    for image in subject.snapshot.images or ():
        value = image.properties.get(const.IMAGE_VIF_MULTIQUEUE)
        if value is not None and value.lower() in {"false", "no", "0", "off"}:
            yield Finding.of(
                _of_image(subject, image, codes.IMAGE_CONFLICT),
                f"image {image.title}",
                f"{const.IMAGE_VIF_MULTIQUEUE}={value}: Nova refuses it together with "
                f"flavors that have {const.VIF_MULTIQUEUE}=true",
                "openstack image set --property "
                f"{const.IMAGE_VIF_MULTIQUEUE}=true {image.id}",
            )


def _of_image(subject: Subject, image: Image, code: str) -> str:
    """Return the code of a finding about an image: a note if it is a tenant's."""
    tenants = image.belongs_to_tenant(subject.snapshot.project)
    return codes.TENANT_IMAGE if tenants else code


def check_spelling(subject: Subject) -> Iterator[Finding]:
    """List keys that were meant to be the project's, and are not."""
    snapshot = subject.snapshot
    for flavor in snapshot.flavors:
        yield from _misspelled("flavor", flavor.id, flavor.name, flavor.extra_specs)
    for server in snapshot.servers:
        for key in filter(_is_near, server.extra_specs):
            yield Finding.of(
                codes.NEAR_MISS,
                str(server),
                f"its flavor {server.flavor} has {key}, which means nothing: "
                f"{const.CLASS_KEY} was meant",
                subject.resize(server),
            )
    for found in snapshot.aggregates:
        yield from _misspelled("aggregate", str(found.id), found.name, found.metadata)
    for image in snapshot.images or ():
        for key in filter(_is_near, image.properties):
            yield Finding.of(
                _of_image(subject, image, codes.NEAR_MISS),
                f"image {image.title}",
                f"{one_line(key)} means nothing, whatever is meant: an image has no "
                f"class, {const.CLASS_KEY} belongs to flavors",
                f"openstack image unset --property {quote(key)} {image.id}",
            )


def _misspelled(
    what: str, uuid: str, name: str, values: Mapping[str, str]
) -> Iterator[Finding]:
    """List keys, with the commands that put their values where they were meant."""
    for key in filter(_is_near, values):
        meant = quote(f"{const.CLASS_KEY}={values[key]}")
        yield Finding.of(
            codes.NEAR_MISS,
            f"{what} {name}",
            f"{key} means nothing: {const.CLASS_KEY} was meant",
            f"openstack {what} unset --property {quote(key)} {quote(uuid)}\n"
            f"openstack {what} set --property {meant} {quote(uuid)}",
        )


def _is_near(key: str) -> bool:
    """Return whether a key is nearly the one that names a class."""
    if key in _KNOWN_KEYS:
        return False
    plain = key.lower().replace("_", ":")
    return plain.startswith(f"{const.NAMESPACE}:") or _alike(plain)


def _alike(key: str) -> bool:
    matcher = difflib.SequenceMatcher(None, const.CLASS_KEY, key)
    # The first is an upper bound that costs little.
    return matcher.quick_ratio() >= _ALIKE and matcher.ratio() >= _ALIKE
