# SPDX-License-Identifier: Apache-2.0
"""A fake libvirt of one host, whose guests survive a restart of nova-compute."""

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
    """Import a module of Nova's fixtures without their package's ``__init__``.

    The ``__init__`` imports half of Nova, and testtools, which no service needs.
    """
    package = types.ModuleType("nova.tests.fixtures")
    package.__path__ = [str(Path(nova.tests.__file__).with_name("fixtures"))]
    sys.modules.setdefault(package.__name__, package)
    return importlib.import_module(f"{package.__name__}.{name}")


fakelibvirt = _fixture("libvirt")
imagebackend = _fixture("libvirt_imagebackend")


@dataclasses.dataclass(frozen=True)
class Hardware:
    """The hardware of a fake host.

    :ivar memory_gb: memory of the whole host in GiB, split evenly over its NUMA nodes
    :ivar domains: directory of its guests, HOSTNAME/NAME; directories of the other
        hosts are beside HOSTNAME
    """

    hostname: str
    shape: str
    memory_gb: int
    domains: str


class SandboxDomain(fakelibvirt.Domain):
    """A guest that keeps the XML that Nova defined.

    Nova's fixture drops parts of the XML: the mode of numatune, the queues.
    """

    def __init__(self, connection: Any, xml: str, **kwargs: Any) -> None:
        super().__init__(connection=connection, xml=xml, **kwargs)
        self.kept_xml = xml

    def XMLDesc(self, flags: int) -> str:  # noqa: N802
        """Return the guest's XML; for a migration with PCI addresses of interfaces."""
        if not flags & fakelibvirt.VIR_DOMAIN_XML_MIGRATABLE:
            return super().XMLDesc(flags)
        # libvirt chooses a PCI address for each interface; the fixture does not.
        root = ET.fromstring(self.kept_xml)  # noqa: S314
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
        """Move the guest: write its XML into the other host's directory."""
        hostname = urllib.parse.urlsplit(destination).hostname
        self._connection.send(hostname, self.name(), params["destination_xml"])
        self.complete_job()
        if flags & fakelibvirt.VIR_MIGRATE_UNDEFINE_SOURCE:
            self._connection.forget(self)


class Connection(fakelibvirt.Connection):
    """The connection to one host's libvirt.

    Each guest is a file NAME.xml; a file NAME.on marks a running guest. So guests
    survive the end of nova-compute, and can arrive from other hosts.
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
        """Return the host's figures with memory in MiB; the fixture returns KiB."""
        info: list[Any] = super().getInfo()
        info[1] //= 1024
        return info

    def getCPUStats(self, _cpu: int, flag: int) -> Any:  # noqa: N802
        """Return the statistics of CPU 0 for every CPU; the fixture has only two."""
        return super().getCPUStats(0, flag)

    def lookupByUUIDString(self, uuid: str) -> Any:  # noqa: N802
        """Return a guest, after a look for guests that have just arrived."""
        self._look()
        return super().lookupByUUIDString(uuid)

    def listAllDomains(self, flags: int | None = None) -> list[Any]:  # noqa: N802
        """Return all guests, including guests that have just arrived."""
        self._look()
        return super().listAllDomains(flags)

    def defineXML(self, xml: str) -> Any:  # noqa: N802
        domain = SandboxDomain(self, xml)
        known = self._vms.get(domain.name())
        if known is not None and known.isActive():
            domain._state = known._state  # noqa: SLF001
            domain._id = known._id  # noqa: SLF001
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
        """Forget a guest without an event: Nova sees the end of the migration job."""
        self._remove_files(domain.name())
        for domains in (self._vms, self._running_vms):
            for key in [key for key, found in domains.items() if found is domain]:
                del domains[key]

    def disk_gb(self) -> int:
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
                    # Another thread deleted the guest after glob() found its file.
                    continue
                domain = SandboxDomain(self, xml)
                self._vms[domain.name()] = domain
                if path.with_suffix(".on").exists():
                    domain._state = fakelibvirt.VIR_DOMAIN_RUNNING  # noqa: SLF001
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
        # The XML first: without it, a file NAME.on means no guest.
        self._file(name, "xml").unlink(missing_ok=True)
        self._file(name, "on").unlink(missing_ok=True)

    def _file(self, name: str, suffix: str) -> Path:
        return self._directory / f"{name}.{suffix}"


def _write(path: Path, text: str) -> None:
    """Write a file atomically, as another process may read it at any time."""
    scratch = path.with_suffix(".new")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)
