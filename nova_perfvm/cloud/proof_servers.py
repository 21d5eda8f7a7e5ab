# SPDX-License-Identifier: Apache-2.0
"""Servers that a proof boots on a host, and all objects that it creates for them.

The description of each object is the proof's name; key pairs have no description, and
are named so.  Cleaning up looks for this name and keeps no list: so one process can
clean up the objects of another process that was killed.
"""

from __future__ import annotations

import base64
import contextlib
import re
import shlex
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError, NotThereError, openstack_errors

_NAME: Final = re.compile(r"perfvm-proof-([0-9a-f]{8})")
_PAUSE_S: Final = 1.0
# Cinder needs minutes to write an image to a volume, and a guest's huge pages are
# zeroed.
_READY_S: Final = 900
# Cinder deletes no volume while it is being written.
_GONE_S: Final = 900
_SSH: Final = 22

Tell = Callable[[str], None]
_Entity = dict[str, Any]


@dataclass(frozen=True)
class WantedServers:
    """The servers that a proof boots.

    :ivar proof: the proof's ID, eight hexadecimal digits
    :ivar host: the compute service's name; nova-scheduler is asked for this host
    :ivar flavor: ID
    :ivar image: ID
    :ivar count: the number of servers
    :ivar volume_gb: size in GiB of each root volume; None for the flavor's own disk
    :ivar volume_type: of the root volumes; None for Cinder's default
    :ivar network: ID
    :ivar floating_network: ID of the network of floating addresses; None to use none
    :ivar public_key: for SSH
    :ivar user_data: for cloud-init
    """

    proof: str
    host: str
    flavor: str
    image: str
    count: int
    network: str
    public_key: str
    user_data: str
    volume_gb: int | None = None
    volume_type: str | None = None
    floating_network: str | None = None

    @property
    def name(self) -> str:
        """The name by which the proof's objects are recognised."""
        return f"perfvm-proof-{self.proof}"


class ProofServer(NamedTuple):
    """A server that accepts SSH logins once its guest is up.

    :ivar volumes: IDs
    """

    name: str
    host: str
    flavor: str
    address: str
    volumes: tuple[str, ...] = ()


class _Kind(NamedTuple):
    """A kind of object that a proof creates.

    :ivar found: yields all objects of this kind in the project, the proofs' and others
    :ivar delete: requests the deletion of one object
    """

    title: str
    found: Callable[[API], Iterator[_Entity]]
    delete: Callable[[API, _Entity], Any]


def _neutron(path: str, key: str, title: str) -> _Kind:
    def found(api: API) -> Iterator[_Entity]:
        query = urlencode({"project_id": api.project()})
        # A Neutron without the router extension has no floating addresses.
        with contextlib.suppress(NotThereError):
            yield from api.neutron("GET", f"{path}?{query}", key=key)

    def delete(api: API, one: _Entity) -> None:
        api.neutron("DELETE", f"{path}/{one['id']}")

    return _Kind(title, found, delete)


# The order of deletion: each kind is in use only by kinds before it.  Servers are
# deleted by force: a soft-deleted one ([DEFAULT]reclaim_instance_interval) would keep
# its CPUs and volumes.
_KINDS: Final = (
    _neutron("/floatingips", "floatingips", "floating address"),
    _Kind(
        "server",
        lambda api: api.nova_list("/servers/detail", "servers"),
        lambda api, one: api.nova(
            "POST", f"/servers/{one['id']}/action", {"forceDelete": None}
        ),
    ),
    _Kind(
        "volume",
        lambda api: api.cinder_list("/volumes/detail", "volumes"),
        lambda api, one: api.cinder("DELETE", f"/volumes/{one['id']}"),
    ),
    _neutron("/security-groups", "security_groups", "security group"),
    _Kind(
        "key pair",
        lambda api: (
            one["keypair"] for one in api.nova("GET", "/os-keypairs", key="keypairs")
        ),
        lambda api, one: api.nova("DELETE", f"/os-keypairs/{quote(one['name'])}"),
    ),
)


def proof_of(one: Mapping[str, Any]) -> str:
    """Return the ID of the proof that created an object; empty if no proof did."""
    told = one["description"] if "description" in one else one.get("name")
    match = _NAME.fullmatch(told or "")
    return match[1] if match else ""


@openstack_errors()
def create(api: API, wanted: WantedServers, tell: Tell) -> Iterator[ProofServer]:
    """Boot the servers one after the other; nova-scheduler must accept each.

    The caller deletes the created objects, also after a failure.

    :raises CloudError: when a request is refused, or a server is not ready in time
    """
    named = {"name": wanted.name, "description": wanted.name}
    key = {"name": wanted.name, "public_key": wanted.public_key, "type": "ssh"}
    with _whole():
        api.nova("POST", "/os-keypairs", {"keypair": key})
    with _whole():
        body = {"security_group": named}
        group = api.neutron("POST", "/security-groups", body, "security_group")["id"]
    for version in ("IPv4", "IPv6"):
        rule = {"security_group_id": group, "direction": "ingress", "protocol": "tcp"}
        rule |= {"ethertype": version, "port_range_min": _SSH, "port_range_max": _SSH}
        api.neutron("POST", "/security-group-rules", {"security_group_rule": rule})
    for number in range(1, wanted.count + 1):
        name = f"{wanted.name}-{number}"
        tell(f"booting {name} on {wanted.host}")
        server = _boot(api, wanted, name, group)
        yield shown(server, address=_address(api, wanted, server))


def _boot(api: API, wanted: WantedServers, name: str, group: str) -> _Entity:
    request = {
        "name": name,
        "description": wanted.name,
        "flavorRef": wanted.flavor,
        "key_name": wanted.name,
        "networks": [{"uuid": wanted.network}],
        "security_groups": [{"name": group}],
        "host": wanted.host,
        "user_data": base64.b64encode(wanted.user_data.encode()).decode(),
        # cloud-init then works without a metadata service, too.
        "config_drive": True,
    }
    if wanted.volume_gb is None:
        request["imageRef"] = wanted.image
    else:
        disk = {
            "boot_index": 0,
            "source_type": "volume",
            "uuid": _volume(api, wanted, name),
        }
        request["block_device_mapping_v2"] = [disk | {"destination_type": "volume"}]
    with _whole():
        made = api.nova("POST", "/servers", {"server": request}, "server")["id"]
    server = _ready(
        lambda: api.nova("GET", f"/servers/{made}", key="server"),
        f"server {name}",
        "ACTIVE",
        "openstack perfvm explain --flavor and --host, and the logs of the host",
    )
    if shown(server).host != wanted.host:
        raise CloudError(f"Nova has booted {name} on {shown(server).host}")
    return server


def _volume(api: API, wanted: WantedServers, name: str) -> str:
    """Create a volume from the image; return its ID."""
    volume = {"name": name, "description": wanted.name, "size": wanted.volume_gb}
    volume |= {"imageRef": wanted.image, "volume_type": wanted.volume_type}
    try:
        with _whole():
            made = api.cinder("POST", "/volumes", {"volume": volume}, "volume")
    except NotThereError as exc:
        raise CloudError(
            f"{exc} openstack volume type create "
            f"{shlex.quote(wanted.volume_type or '')} makes a type"
        ) from exc
    found = _ready(
        lambda: api.cinder("GET", f"/volumes/{made['id']}", key="volume"),
        f"volume {name}",
        "available",
        "openstack --os-volume-api-version 3.5 volume message list",
    )
    return str(found["id"])


def _ready(
    look: Callable[[], _Entity], title: str, wanted: str, remedy: str
) -> _Entity:
    """Return an object once it has the status `wanted`.

    :param look: reads the object
    :param remedy: where the operator finds the reason of another status
    :raises CloudError: when the object is in error, or not ready after _READY_S seconds
    """
    deadline = time.monotonic() + _READY_S
    while (found := look())["status"] != wanted:
        status = found["status"]
        if status.lower().startswith("error"):
            why = (found.get("fault") or {}).get("message", "no reason given")
            raise CloudError(f"{title} is in {status}: {why}: see {remedy}")
        if time.monotonic() > deadline:
            raise CloudError(
                f"{title} is {status} after {_READY_S} s, not {wanted}: see {remedy}"
            )
        time.sleep(_PAUSE_S)
    return found


def _address(api: API, wanted: WantedServers, server: _Entity) -> str:
    """Return the address of a server, a floating one if the proof wants one."""
    if wanted.floating_network is None:
        return _listed_address(server)
    (port, *_) = api.neutron("GET", f"/ports?device_id={server['id']}", key="ports")
    body = {"floating_network_id": wanted.floating_network, "port_id": port["id"]}
    body |= {"description": wanted.name}
    with _whole():
        made = api.neutron("POST", "/floatingips", {"floatingip": body}, "floatingip")
    address: str = made["floating_ip_address"]
    return address


def _listed_address(server: Mapping[str, Any]) -> str:
    """Return a server's floating address if it has one, else a fixed address."""
    found = [one for of_net in server["addresses"].values() for one in of_net]
    found.sort(key=lambda one: one.get("OS-EXT-IPS:type") != "floating")
    if not found:
        raise CloudError(f"server {server['name']} has no address: add a port to it")
    address: str = found[0]["addr"]
    return address


@openstack_errors()
def existing(api: API, server: str) -> ProofServer:
    """Return a server that exists already.

    :param server: ID
    """
    return shown(api.nova("GET", f"/servers/{quote(server)}", key="server"))


def shown(server: Mapping[str, Any], address: str | None = None) -> ProofServer:
    """Turn Nova's entry of a server into a ProofServer."""
    return ProofServer(
        server["name"],
        server["OS-EXT-SRV-ATTR:host"],
        server["flavor"]["original_name"],
        _listed_address(server) if address is None else address,
        tuple(
            one["id"] for one in server.get("os-extended-volumes:volumes_attached", ())
        ),
    )


@openstack_errors()
def find_network(api: API, name: str | None, *, external: bool = False) -> str:
    """Return the ID of a network.

    :param name: name or ID; None for the only network
    :raises CloudError: when no network or several networks match
    """
    query = {"router:external": external} | ({} if name is None else {"name": name})
    found = api.neutron("GET", f"/networks?{urlencode(query)}", key="networks")
    if not found and name is not None:
        found = api.neutron(
            "GET", f"/networks?{urlencode({'id': name})}", key="networks"
        )
    if len(found) != 1:
        names = ", ".join(f"{one['name']} ({one['id']})" for one in found)
        raise CloudError(
            f"expected one network{'' if name is None else f' {name}'}, found "
            f"{names or 'none'}: name it, or its ID"
        )
    network: str = found[0]["id"]
    return network


def left(api: API, proof: str | None = None) -> list[str]:
    """Return the objects that proofs have left behind, as "kind name".

    :param proof: ID of a proof; None for all proofs of the project
    """
    return [
        f"{kind.title} {one.get('name') or one['id']}"
        for kind in _KINDS
        for one in _of_proof(api, kind, proof)
    ]


def delete(api: API, proof: str | None, tell: Tell) -> None:
    """Delete all objects of a proof, and wait until they are gone.

    :param proof: the proof's ID; None for all proofs of the project
    :raises CloudError: when an object remains
    """
    stays = []
    for kind in _KINDS:
        try:
            _delete_all(api, kind, proof, tell)
        except CloudError as exc:
            stays.append(str(exc))
    if stays:
        raise CloudError(
            f"{'; '.join(stays)}: see to that, then openstack perfvm prove --clean"
        )


def _delete_all(api: API, kind: _Kind, proof: str | None, tell: Tell) -> None:
    deadline = time.monotonic() + _GONE_S
    asked: set[str] = set()
    while found := _of_proof(api, kind, proof):
        why = "it is being deleted"
        for one in found:
            name = one.get("name") or one["id"]
            if name not in asked:
                tell(f"deleting {kind.title} {name}")
            asked.add(name)
            try:
                kind.delete(api, one)
            except NotThereError:
                continue
            except CloudError as exc:
                # For example, Cinder refuses to delete a volume that is still attached.
                why = str(exc)
        if time.monotonic() > deadline:
            name = found[0].get("name") or found[0]["id"]
            raise CloudError(f"{kind.title} {name} is still there ({why})")
        time.sleep(_PAUSE_S)


@openstack_errors()
def _of_proof(api: API, kind: _Kind, proof: str | None) -> list[_Entity]:
    made = [(proof_of(one), one) for one in kind.found(api)]
    return [one for of, one in made if of and proof in {None, of}]


@contextlib.contextmanager
def _whole() -> Iterator[None]:
    """Block signals during a request that creates an object.

    An interrupted request may still create its object, perhaps after the cleanup has
    looked for the proof's objects: the object would then be left behind.
    """
    signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
