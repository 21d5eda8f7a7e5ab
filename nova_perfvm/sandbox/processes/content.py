# SPDX-License-Identifier: Apache-2.0
"""What an operator makes in a new cloud: a network, an image, flavors, aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nova_perfvm import constants as const
from nova_perfvm.cloud import converge
from nova_perfvm.cloud.api import API
from nova_perfvm.generate.flavors import generate_flavors, generate_image_properties
from nova_perfvm.generate.properties import extensions
from nova_perfvm.placement import slots
from nova_perfvm.sandbox.processes.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nova_perfvm.generate.flavors import PolicyFlavor
    from nova_perfvm.policy import Policy
    from nova_perfvm.sandbox.processes.hostspec import PretendedHost

NETWORK: Final = "private"
IMAGE: Final = "guest"
CIDR: Final = "10.20.0.0/16"

# From here on nova-api validates extra specs.
_COMPUTE: Final = "2.86"
_PLACEMENT: Final = "1.36"
_IMAGE_BYTES: Final = b"\0" * 65536


class Content:
    """What is made through the APIs, if it is not there already."""

    def __init__(self, connection: Any, policy: Policy) -> None:
        """Make nothing yet.

        :param connection: an SDK connection of the administrator
        """
        self._connection = connection
        self._policy = policy

    def make(self, hosts: Sequence[PretendedHost], tell: Callable[[str], None]) -> None:
        """Make everything.

        :param tell: called with each thing that is done
        :raises SandboxError: when an API refuses something
        :raises RefusedError: when a host cannot be enrolled
        """
        self._network()
        self._image()
        tell(f"network {NETWORK}, image {IMAGE}")
        if self._policy.placement != "none":
            # General flavors forbid them; no host may have reported them.
            for name in sorted(slots.traits_to_avoid(self._policy)):
                self._request("placement", "PUT", f"/traits/{name}", None, _PLACEMENT)
        flavors = generate_flavors(self._policy, generators=extensions.load())
        for flavor in flavors:
            self._flavor(flavor)
        tell(f"flavors {', '.join(flavor.name for flavor in flavors)}")
        if self._policy.managed_hosts == "labelled":
            self._label(hosts)
        if self._policy.placement == "units":
            self._enroll(hosts)
            tell(f"{len(hosts)} hosts enrolled")

    def _network(self) -> None:
        network = self._connection.network
        if network.find_network(NETWORK) is None:
            made = network.create_network(name=NETWORK, is_shared=True)
            network.create_subnet(
                name=NETWORK,
                network_id=made.id,
                ip_version=4,
                cidr=CIDR,
                is_dhcp_enabled=False,
            )

    def _image(self) -> None:
        image = self._connection.image
        if image.find_image(IMAGE) is not None:
            return
        properties = generate_image_properties(
            self._policy, generators=extensions.load()
        )
        body = {
            "name": IMAGE,
            "disk_format": "raw",
            "container_format": "bare",
            "visibility": "public",
            **properties,
        }
        made = self._request("image", "POST", "/images", body)
        response = image.put(
            f"/images/{made['id']}/file",
            data=_IMAGE_BYTES,
            headers={"Content-Type": "application/octet-stream"},
        )
        _check("image", "PUT", "file", response)

    def _flavor(self, flavor: PolicyFlavor) -> None:
        compute = self._connection.compute
        if compute.find_flavor(flavor.name) is not None:
            return
        body = {
            "flavor": {
                "name": flavor.name,
                "vcpus": flavor.vcpus,
                "ram": flavor.memory_mb,
                "disk": flavor.root_gb,
            }
        }
        made = self._request("compute", "POST", "/flavors", body, _COMPUTE)["flavor"]
        specs = {"extra_specs": dict(flavor.extra_specs)}
        path = f"/flavors/{made['id']}/os-extra_specs"
        self._request("compute", "POST", path, specs, _COMPUTE)

    def _label(self, hosts: Sequence[PretendedHost]) -> None:
        """Name each host's class, where the policy manages none without."""
        compute = self._connection.compute
        members: dict[str, list[str]] = {}
        for host in hosts:
            if host.mode == "shared":
                name = self._policy.default_class.name
            elif host.mode == "dedicated":
                # With several, each host has said which.
                name = host.class_name or self._policy.pinned_classes[0].name
            else:
                continue
            members.setdefault(name, []).append(host.name)
        for name, names in members.items():
            if compute.find_aggregate(name) is not None:
                continue
            aggregate = compute.create_aggregate(name=name)
            compute.set_aggregate_metadata(aggregate, {const.CLASS_KEY: name})
            for host_name in names:
                compute.add_host_to_aggregate(aggregate, host_name)

    def _enroll(self, hosts: Sequence[PretendedHost]) -> None:
        """Do what ``openstack perfvm host enroll`` does, for every host."""
        api = API(self._connection)
        for host in hosts:
            # No API shows cpu sets.
            slots = 0 if host.mode == "shared" else None
            converge.enroll(api, self._policy, host.name, slots=slots)

    def _request(
        self, service: str, method: str, path: str, body: Any, version: str = ""
    ) -> Any:
        proxy = getattr(self._connection, service)
        arguments: dict[str, Any] = {"microversion": version} if version else {}
        if body is not None:
            arguments["json"] = body
        response = proxy.request(path, method, **arguments)
        _check(service, method, path, response)
        return response.json() if response.content else None


def _check(service: str, method: str, path: str, response: Any) -> None:
    if response.status_code >= 400:
        raise SandboxError(
            f"{service}: {method} {path}: {response.status_code}: {response.text}"
        )
