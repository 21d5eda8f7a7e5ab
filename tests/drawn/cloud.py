# SPDX-License-Identifier: Apache-2.0
"""The embedded cloud of a world that was drawn."""

import contextlib
import dataclasses

from nova import utils
from nova.tests.fixtures import CyborgFixture
from nova.tests.fixtures import libvirt as fakelibvirt
from oslo_utils import units

from tests.cloud import DEFAULT_FILTERS
from tests.embedded import OperatedCloud
from tests.embedded.hosts import UnevenHostSettings

# Nova takes extra specs unchecked with it, as it took those of older clouds.
UNCHECKED = "2.85"
# Of each kind of device that Nova's pretended libvirt has, and of one that no host has.
_VENDOR = fakelibvirt.PCI_VEND_ID
ALIASES = (
    {"name": "gpu", "product_id": fakelibvirt.PCI_PROD_ID, "device_type": "type-PCI"},
    {"name": "vf", "product_id": fakelibvirt.VF_PROD_ID, "device_type": "type-VF"},
    {"name": "pf", "product_id": fakelibvirt.PF_PROD_ID, "device_type": "type-PF"},
    {"name": "vc_fpga", "product_id": "0d5c", "device_type": "type-PCI"},
    {"name": "a100", "product_id": "20b0", "device_type": "type-PCI"},
)
ALIASES = tuple({"vendor_id": _VENDOR} | alias for alias in ALIASES)
DEVICES = tuple(
    {"vendor_id": _VENDOR, "product_id": alias["product_id"]} for alias in ALIASES[:3]
)
# Traits and resource classes that somebody made; others nobody did.
TRAITS = ("CUSTOM_SSD", "CUSTOM_TRUSTED", "CUSTOM_LICENSED_WINDOWS", "CUSTOM_WINDOWS")
RESOURCE_CLASSES = ("CUSTOM_BAREMETAL", "CUSTOM_LICENSE")
# Filters of somebody else, as available_filters names them.
FOREIGN = (
    "tests.drawn.foreign.FailureDomainFilter",
    "tests.drawn.foreign.HeadroomFilter",
)
# What Glance has of each image beside its properties.
_MEMBERS = {
    "status": "active",
    "container_format": "bare",
    "disk_format": "raw",
    "size": 25165824,
    "min_ram": 0,
    "min_disk": 0,
    "protected": False,
    "visibility": "public",
}


@dataclasses.dataclass(frozen=True)
class DrawnHostSettings(UnevenHostSettings):
    """HostSettings of a host of hosts.yaml, which says what the members mean."""

    pages: dict[int, int] = dataclasses.field(default_factory=dict)
    devices: dict[str, int] = dataclasses.field(default_factory=dict)
    reserved_memory_mb: int = 512
    reserved_cpus: int = 0

    def options(self):
        """Return {(group or None, option): value} for this host's nova.conf."""
        return super().options() | {
            (None, "reserved_host_memory_mb"): self.reserved_memory_mb,
            (None, "reserved_host_cpus"): self.reserved_cpus,
        }

    def connection(self, hostname, directory):
        """Return the pretended libvirt of a host with this hardware."""
        made = super().connection(hostname, directory)
        if self.devices:
            counts = {f"num_{kind}": n for kind, n in self.devices.items()}
            counts = {"num_pfs": counts["num_pf"], "num_vfs": counts["num_vf"]} | {
                "num_pci": counts["num_pci"]
            }
            made.pci_info = fakelibvirt.HostPCIDevicesInfo(**counts)
        for cell in made.host_info.numa_topology.cells if self.pages else ():
            large_kb = sum(gib * units.Mi for gib in self.pages.values())
            sizes = [(size, gib * units.Mi // size) for size, gib in self.pages.items()]
            cell.mempages = fakelibvirt.create_mempages(
                [(4, (cell.memory - large_kb) // 4), *sizes]
            )
        return made


class DrawnCloud(OperatedCloud):
    """An embedded cloud whose hosts, flavors and images come from the lists."""

    SETTINGS = DrawnHostSettings

    def _setUp(self):  # noqa: N802
        super()._setUp()
        self.useFixture(CyborgFixture())

    def start_drawn(self, name, shape):
        """Start the host of an entry of hosts.yaml."""
        members = {field.name for field in dataclasses.fields(DrawnHostSettings)}
        settings = {key: value for key, value in shape.items() if key in members}
        if "uneven" in settings:
            settings["uneven"] = tuple(map(tuple, settings["uneven"]))
        # A compute reads it once, when it starts.
        reserved = shape.get("reserved_pages", [])
        self._services.flags(reserved_huge_pages=reserved)
        with contextlib.ExitStack() as after:
            after.callback(self._services.flags, reserved_huge_pages=[])
            self.start_host(name, **settings)

    def create_drawn_flavor(self, flavor):
        """Create the flavor of an entry of flavors.yaml."""
        body = {key: flavor[key] for key in ("name", "vcpus", "ram", "disk")}
        body |= {"id": flavor["name"], "swap": flavor.get("swap", 0)}
        body["OS-FLV-EXT-DATA:ephemeral"] = flavor.get("ephemeral", 0)
        with utils.temporary_mutation(self.api, microversion=UNCHECKED):
            self.api.post_flavor({"flavor": body})
            if specs := flavor.get("specs"):
                self.api.post_extra_spec(flavor["name"], {"extra_specs": specs})

    def create_drawn_image(self, glance, image):
        """Create the image of an entry of images.yaml in both Glances; return its ID.

        Nova's pretends what Nova makes of Glance's answers, ``glance`` answers itself.
        """
        members = {key: image.get(key, value) for key, value in _MEMBERS.items()}
        properties = {k: v for k, v in image.items() if k not in {"name", *members}}
        made = glance.add(image["name"], **members, **properties)
        known = members | {"id": made["id"], "name": image["name"]}
        self._services.glance.create(None, known | {"properties": properties})
        return made["id"]

    def image_of(self, image):
        """Return what Nova makes of Glance's answer on an image."""
        return self._services.glance.show(None, image)

    def enable(self, name, *, enabled):
        """Enable or disable the compute service of a host."""
        status = "enabled" if enabled else "disabled"
        self.api.put_service(self._service(name)["id"], {"status": status})

    def delete_aggregate(self, aggregate):
        """Delete an aggregate, whose hosts stay."""
        path = f"/os-aggregates/{aggregate}"
        for host in self.api.api_get(path).body["aggregate"]["hosts"]:
            self.api.api_post(f"{path}/action", {"remove_host": {"host": host}})
        self.api.api_delete(path)


def filters_of(setting, default):
    """Return the names of the filters of an entry of settings.yaml, in their order."""
    lists = {"DEFAULT": default, "OURS": DEFAULT_FILTERS}
    found = [one for name in setting["filters"] for one in lists.get(name, (name,))]
    return list(dict.fromkeys(found))
