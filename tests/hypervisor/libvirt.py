# SPDX-License-Identifier: Apache-2.0
"""A libvirt that pretends one host; its domains outlive the service."""

from __future__ import annotations

import dataclasses
import importlib
import re
import sys
import types
import urllib.parse
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import nova.tests
from oslo_utils import units

from nova_perfvm.policy import HostShape


def _fixture(name: str) -> Any:
    """Import a module of fixtures without its package's ``__init__``.

    That imports half of Nova, and testtools, which no service needs.
    """
    package = types.ModuleType("nova.tests.fixtures")
    package.__path__ = [str(Path(nova.tests.__file__).with_name("fixtures"))]
    sys.modules.setdefault(package.__name__, package)
    return importlib.import_module(f"{package.__name__}.{name}")


fakelibvirt = _fixture("libvirt")
imagebackend = _fixture("libvirt_imagebackend")


@dataclasses.dataclass(frozen=True)
class Hardware:
    """What a host is made of.

    :ivar memory_gb: of the whole host, split evenly over its NUMA nodes
    :ivar domains: directory HOSTNAME/NAME of its guests; beside HOSTNAME are the
        other hosts
    """

    hostname: str
    shape: str
    memory_gb: int
    domains: str


class SandboxDomain(fakelibvirt.Domain):
    """A guest; what Nova defined is kept word by word.

    The fixture forgets parts of it: the mode of numatune, the queues.
    """

    def __init__(self, connection: Any, xml: str, **kwargs: Any) -> None:
        super().__init__(connection=connection, xml=xml, **kwargs)
        self.kept_xml = xml

    def XMLDesc(self, flags: int) -> str:  # noqa: N802
        """Return the description; for a migration the one that is rewritten."""
        if not flags & fakelibvirt.VIR_DOMAIN_XML_MIGRATABLE:
            return super().XMLDesc(flags)
        # Each interface has the PCI address that libvirt would have chosen.
        root = ET.fromstring(self.kept_xml)
        for slot, interface in enumerate(root.findall("devices/interface"), start=3):
            if interface.find("address") is None:
                ET.SubElement(interface, "address", type="pci", slot=hex(slot))
        return ET.tostring(root, encoding="unicode")

    def migrateToURI3(  # noqa: N802
        self,
        destination: str,
        params: dict[str, Any],
        flags: int,
    ) -> None:
        """Move the guest: its XML appears in the other host's directory."""
        hostname = urllib.parse.urlsplit(destination).hostname
        self._connection.send(hostname, self.name(), params["destination_xml"])
        self.complete_job()
        if flags & fakelibvirt.VIR_MIGRATE_UNDEFINE_SOURCE:
            self._connection.forget(self)


class Connection(fakelibvirt.Connection):
    """The connection to one host's libvirt.

    Each guest is a file NAME.xml; NAME.on stands for one that runs. So guests
    survive the end of nova-compute, and come from other hosts.
    """

    def __init__(self, hardware: Hardware) -> None:
        shape = HostShape.parse(hardware.shape)
        super().__init__(
            uri="qemu:///system",
            version=fakelibvirt.FAKE_LIBVIRT_VERSION,
            hv_version=fakelibvirt.FAKE_QEMU_VERSION,
            hostname=hardware.hostname,
            host_info=fakelibvirt.HostInfo(
                cpu_nodes=shape.cells,
                cpu_sockets=1,
                cpu_cores=shape.cores,
                cpu_threads=shape.threads,
                kB_mem=hardware.memory_gb * units.Mi,
            ),
        )
        self._directory = Path(hardware.domains)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._look()

    def getInfo(self) -> list[Any]:  # noqa: N802
        """Return the memory in MiB, as libvirt does; the fixture gives KiB."""
        info: list[Any] = super().getInfo()
        info[1] //= 1024
        return info

    def getCPUStats(self, _cpu: int, flag: int) -> Any:  # noqa: N802
        """Return the same for every CPU; the fixture knows two."""
        return super().getCPUStats(0, flag)

    def lookupByUUIDString(self, uuid: str) -> Any:  # noqa: N802
        """Find a guest, also one that has just arrived."""
        self._look()
        return super().lookupByUUIDString(uuid)

    def listAllDomains(self, flags: int | None = None) -> list[Any]:  # noqa: N802
        """Return the guests, also those that have just arrived."""
        self._look()
        return super().listAllDomains(flags)

    def defineXML(self, xml: str) -> Any:  # noqa: N802
        """Define a guest, and keep its XML."""
        domain = SandboxDomain(self, xml)
        known = self._vms.get(domain.name())
        if known is not None and known.isActive():
            domain._state = known._state
            domain._id = known._id
        self._vms[domain.name()] = domain
        _write(self._file(domain.name(), "xml"), xml)
        self._emit_lifecycle(domain, fakelibvirt.VIR_DOMAIN_EVENT_DEFINED, 0)
        return domain

    def send(self, hostname: str, name: str, xml: str) -> None:
        """Hand a running guest over to another host."""
        directory = self._directory.parents[1] / hostname / self._directory.name
        (directory / f"{name}.on").touch()
        _write(directory / f"{name}.xml", xml)

    def forget(self, domain: Any) -> None:
        """Lose a guest without an event: Nova learns of it from the job."""
        self._remove_files(domain.name())
        for domains in (self._vms, self._running_vms):
            for key in [key for key, found in domains.items() if found is domain]:
                del domains[key]

    def disk_gb(self) -> int:
        """Return how much disk the guests' flavors ask for."""
        return sum(
            int(size)
            for domain in list(self._vms.values())
            for size in re.findall(r"<nova:disk>(\d+)</", domain.kept_xml)
        )

    def _look(self) -> None:
        for path in sorted(self._directory.glob("*.xml")):
            if path.stem not in self._vms:
                try:
                    xml = path.read_text(encoding="utf-8")
                except FileNotFoundError:
                    # Another thread has just deleted this guest.
                    continue
                domain = SandboxDomain(self, xml)
                self._vms[domain.name()] = domain
                if path.with_suffix(".on").exists():
                    domain._state = fakelibvirt.VIR_DOMAIN_RUNNING
                    self._mark_running(domain)

    def _mark_running(self, domain: Any) -> None:
        super()._mark_running(domain)
        self._file(domain.name(), "on").touch()

    def _mark_not_running(self, domain: Any) -> None:
        self._file(domain.name(), "on").unlink(missing_ok=True)
        super()._mark_not_running(domain)

    def _undefine(self, domain: Any) -> None:
        self._remove_files(domain.name())
        super()._undefine(domain)

    def _remove_files(self, name: str) -> None:
        # First the XML: a file .on alone is no guest.
        self._file(name, "xml").unlink(missing_ok=True)
        self._file(name, "on").unlink(missing_ok=True)

    def _file(self, name: str, suffix: str) -> Path:
        return self._directory / f"{name}.{suffix}"


def _write(path: Path, text: str) -> None:
    """Write a file that appears whole: another process may be looking."""
    scratch = path.with_suffix(".new")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)
