# SPDX-License-Identifier: Apache-2.0
"""The cloud of a proof: room on the host, servers to boot, and their volumes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from shlex import quote

from nova_perfvm.changes.migrations import goals
from nova_perfvm.changes.migrations.model import command
from nova_perfvm.changes.migrations.planning import Planning
from nova_perfvm.cloud import answers, candidates, images, proof_servers, servers
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.proof_servers import ProofServer, Tell, WantedServers
from nova_perfvm.diagnose import explain
from nova_perfvm.diagnose.explain.headline import headline
from nova_perfvm.diagnose.verdicts import SchedulerSettings
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.policy import Policy, VMClass


@dataclass
class ProofCloud:
    """A cloud as a proof sees it.

    :ivar look: returns nova-scheduler's settings and a snapshot of the cloud
    :ivar named: names or IDs of existing servers to prove; none to boot some
    :ivar floating_network: name or ID of the network of floating addresses, if any
    :ivar proof: the proof's ID, eight hexadecimal digits
    :ivar made: whether servers may have been created
    """

    api: API
    tell: Tell
    look: Callable[[Policy], tuple[SchedulerSettings, Snapshot]]
    flavor: str
    image: str
    named: Sequence[str] = ()
    network: str | None = None
    floating_network: str | None = None
    volume_gb: int = 20
    proof: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    made: bool = False

    def existing(self) -> list[ProofServer]:
        return [
            proof_servers.existing(self.api, one.id)
            for one in servers.named(self.api, self.named)
        ]

    def no_room(self, policy: Policy, host: str) -> list[str]:
        """Return why VMs of the flavor cannot come to a host, and what helps."""
        settings, snapshot = self.look(policy)
        request, _ = explain.request_of(snapshot, flavor=self.flavor, image=self.image)
        offered = candidates.offered(self.api, request, settings, snapshot.aggregates)
        found = explain.explain(
            policy, snapshot, request, settings, host=host, offered=offered
        )
        if snapshot.servers_by_host.get(host):
            drained = goals.drain(Planning(policy, snapshot, settings), host)
            moves = [line for m in drained.moves for line in command(m).splitlines()]
            drain = f"openstack perfvm plan drain {quote(host)} --execute"
            return [f"{host} has servers; {drain}:", *moves, *drained.reasons]
        return [] if found.accepting else [headline(found)]

    def boot(
        self, host: str, vm_class: VMClass, public_key: str, user_data: str
    ) -> list[ProofServer]:
        """Boot as many servers as the class allows on a host, and return them."""
        api, floating = self.api, self.floating_network
        of_volume = vm_class.disk.source == "volume"
        flavors = answers.flavor_list(api)
        wanted = WantedServers(
            proof=self.proof,
            host=host,
            flavor=next(one["id"] for one in flavors if one["name"] == self.flavor),
            image=images.find_image(api, self.image).id,
            count=vm_class.max_per_host or 1,
            network=proof_servers.find_network(api, self.network),
            floating_network=floating
            and proof_servers.find_network(api, floating, external=True),
            public_key=public_key,
            user_data=user_data,
            volume_gb=self.volume_gb if of_volume else None,
            volume_type=vm_class.disk.volume_type if of_volume else None,
        )
        self.made = True
        return list(proof_servers.create(api, wanted, self.tell))

    def volumes(
        self, vm_class: VMClass, there: Sequence[ProofServer]
    ) -> dict[str, list[str]] | None:
        """Return {target: its volumes of the class's type}; None for other classes."""
        if vm_class.disk.source != "volume":
            return None
        wanted = vm_class.disk.volume_type
        return {
            f"vm{number}": [
                volume["id"]
                for volume in (
                    self.api.cinder("GET", f"/volumes/{one}", key="volume")
                    for one in server.volumes
                )
                if wanted in {None, volume["volume_type"]}
            ]
            for number, server in enumerate(there, 1)
        }
