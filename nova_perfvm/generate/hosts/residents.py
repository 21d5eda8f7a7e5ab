# SPDX-License-Identifier: Apache-2.0
"""The VMs that are on a host, and the cpu sets that nova-compute then refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nova_perfvm import constants as const
from nova_perfvm.generate.hosts.errors import HostConfigError
from nova_perfvm.printable import some_of

_PCPU: Final = re.compile(r"resources([1-9][0-9]*)?:PCPU")
_NAMES_SHOWN: Final = 10
# Servers in one of these states are on no host.
_ELSEWHERE: Final = ("SHELVED_OFFLOADED", "DELETED")
_SHOW: Final = (
    "give the output of: for id in $(openstack server list --all-projects --host HOST "
    "-f value -c ID); do openstack --os-compute-api-version 2.47 server show -f json "
    "$id; done"
)


@dataclass(frozen=True, slots=True)
class Resident:
    """One VM.

    :ivar name: its name, or its ID if it has none
    :ivar cpu_policy: ``shared``, ``dedicated`` or ``mixed``
    :ivar host: where Nova says it is, None if the file does not say
    """

    name: str
    cpu_policy: str
    host: str | None = None


def parse_residents(text: str, source: str) -> tuple[Resident, ...]:
    """Read a host's servers.

    Accepted are a list of servers, an object whose key ``servers`` holds one
    (Nova's ``GET /servers/detail``), and server objects one after the other (a
    loop over ``openstack server show -f json``).  Of each server are read:
    ``name`` and ``id``; ``flavor`` with its ``extra_specs``; and, if given,
    ``image`` with its ``properties``, ``status`` and
    ``OS-EXT-SRV-ATTR:host``.  Case does not matter in the names of keys.

    :param source: the file's name, for messages
    :raises HostConfigError: when it is none of these, a server's extra specs are
        not in it, or the servers are on several hosts
    """
    residents = []
    for number, server in enumerate(_servers(text, source), 1):
        where = f"{source}: server {number}"
        if not isinstance(server, dict):
            raise HostConfigError(f"{where} is no object: {_SHOW}")
        fields = {str(key).lower(): value for key, value in server.items()}
        if str(fields.get("status", "")).upper() not in _ELSEWHERE:
            residents.append(_resident(fields, where))
    hosts = sorted({r.host for r in residents if r.host})
    if len(hosts) > 1:
        raise HostConfigError(
            f"{source}: has servers of several hosts ({_listed(hosts)}): give those of "
            "the host that is to be configured"
        )
    return tuple(residents)


def _servers(text: str, source: str) -> Iterator[Any]:
    """Yield the servers of JSON documents, of which a text may hold several."""
    decoder, rest = json.JSONDecoder(), text.lstrip()
    while rest:
        try:
            document, end = decoder.raw_decode(rest)
        except (ValueError, RecursionError) as exc:
            raise HostConfigError(f"{source}: no JSON ({exc}): {_SHOW}") from exc
        rest = rest[end:].lstrip()
        if isinstance(document, dict):
            document = document.get("servers", [document])
        if not isinstance(document, list):
            raise HostConfigError(
                f"{source}: {document!r:.40} is no list of servers: {_SHOW}"
            )
        yield from document


def _resident(fields: Mapping[str, Any], where: str) -> Resident:
    name = fields.get("name") or fields.get("id")
    if not isinstance(name, str):
        raise HostConfigError(f"{where} has no name: {_SHOW}")
    flavor = fields.get("flavor")
    specs = flavor.get("extra_specs") if isinstance(flavor, dict) else None
    if not isinstance(specs, dict):
        raise HostConfigError(
            f"{where}, {name!r}: its flavor's extra_specs are not there, so whether it "
            f"is pinned is not known: {_SHOW}"
        )
    image = fields.get("image")
    properties = image.get("properties") if isinstance(image, dict) else None
    host = fields.get("os-ext-srv-attr:host")
    return Resident(
        name,
        _cpu_policy(specs, properties if isinstance(properties, dict) else {}),
        host if isinstance(host, str) and host else None,
    )


def _cpu_policy(specs: Mapping[str, Any], image: Mapping[str, Any]) -> str:
    """Return the policy as nova.virt.hardware.numa_get_constraints derives it."""
    if any(_PCPU.match(str(key)) for key in specs):
        return "dedicated"
    policy = str(specs.get(const.CPU_POLICY) or image.get("hw_cpu_policy"))
    return policy if policy in {"dedicated", "mixed"} else "shared"


def refuse_residents(
    residents: Sequence[Resident], *, dedicated: bool, shared: bool
) -> None:
    """Refuse cpu sets with which nova-compute would not start.

    These are the conditions of LibvirtDriver._validate_pinning_configuration in
    Nova's virt/libvirt/driver.py.

    :param dedicated: whether the host is to have dedicated CPUs
    :param shared: whether it is to have shared ones
    :raises HostConfigError: naming the VMs that are in the way
    """
    for refused, policy, words, remedy in (
        (dedicated and not shared, "shared", "are not pinned", "shared CPUs"),
        (shared and not dedicated, "dedicated", "are pinned", "dedicated CPUs"),
        (
            not (shared and dedicated),
            "mixed",
            "have pinned and unpinned CPUs",
            "CPUs of both kinds",
        ),
    ):
        names = [r.name for r in residents if r.cpu_policy == policy]
        if refused and names:
            raise HostConfigError(
                f"nova-compute would not start: the host would have no {remedy}, and "
                f"VMs on it {words} ({_listed(names)}): move or delete them first, or "
                "choose another --mode"
            )


def _listed(names: Sequence[str]) -> str:
    return some_of([repr(name) for name in names], _NAMES_SHOWN)
