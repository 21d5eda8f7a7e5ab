# SPDX-License-Identifier: Apache-2.0
"""The domains that the pretended libvirts run."""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING, Any

import fixtures
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.virt.libvirt import driver as libvirt_driver

from nova_perfvm.sandbox.domain_xml import with_addresses
from nova_perfvm.sandbox.pretended import power_off

if TYPE_CHECKING:
    from collections.abc import Callable

_DOMAIN = "nova.tests.fixtures.libvirt.Domain"
_DRIVER = "nova.virt.libvirt.driver.LibvirtDriver"


class Domains(fixtures.Fixture):
    """Keep the XML of every guest, and let guests move between hosts.

    The pretended libvirt forgets parts of what it is given (the mode of
    numatune, the queues of an interface), so Nova's XML is recorded on its
    way there.

    :param connections: {hostname: pretended libvirt connection}
    """

    def __init__(self, connections: dict[str, Any]) -> None:
        super().__init__()
        self._connections = connections
        self._xml = {}

    def xml(self, server_id: str, hostname: str) -> str:
        """Return the newest XML of a server's domain on a host.

        :raises KeyError: when the server never had a domain there
        """
        return self._xml[server_id, hostname]

    def _setUp(self) -> None:  # noqa: N802
        self._patch(f"{_DRIVER}._get_guest_xml", self._recording())
        self._patch(f"{_DOMAIN}.XMLDesc", self._describing())
        self._patch(f"{_DOMAIN}.migrateToURI3", self._migrating())
        self._patch(f"{_DRIVER}.migrate_disk_and_power_off", power_off)

    def _patch(self, path: str, value: Any) -> None:
        self.useFixture(fixtures.MonkeyPatch(path, value))

    def _recording(self) -> Callable[..., Any]:
        original = libvirt_driver.LibvirtDriver._get_guest_xml  # noqa: SLF001

        def _get_guest_xml(
            driver: Any, context: Any, instance: Any, *args: Any, **kwargs: Any
        ) -> str:
            xml = original(driver, context, instance, *args, **kwargs)
            hostname = driver._host.get_connection().hostname  # noqa: SLF001
            self._xml[instance.uuid, hostname] = xml
            return xml

        return _get_guest_xml

    def _describing(self) -> Callable[..., Any]:
        original = fakelibvirt.Domain.XMLDesc

        def XMLDesc(domain: Any, flags: int) -> str:  # noqa: N802
            # The one description that a migration rewrites for its target
            if flags & fakelibvirt.VIR_DOMAIN_XML_MIGRATABLE:
                key = domain.UUIDString(), domain._connection.hostname  # noqa: SLF001
                return with_addresses(self._xml[key])
            return original(domain, flags)

        return XMLDesc

    def _migrating(self) -> Callable[..., Any]:
        def migrateToURI3(  # noqa: N802
            domain: Any,
            destination: str,
            params: dict[str, Any],
            flags: int,
        ) -> None:
            hostname = urllib.parse.urlsplit(destination).hostname
            xml = params["destination_xml"]
            self._connections[hostname].defineXML(xml).create()
            self._xml[domain.UUIDString(), hostname] = xml
            domain.complete_job()
            if flags & fakelibvirt.VIR_MIGRATE_UNDEFINE_SOURCE:
                _forget(domain)

        return migrateToURI3


def _forget(domain: Any) -> None:
    # Without an event: Nova learns of it from the job.
    source = domain._connection  # noqa: SLF001
    for domains in (source._vms, source._running_vms):  # noqa: SLF001
        for key in [key for key, found in domains.items() if found is domain]:
            del domains[key]
