# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What libvirt would have added to a domain that was defined in it."""

from __future__ import annotations

from xml.etree import ElementTree as ET


def with_addresses(xml: str) -> str:
    """Give each interface the PCI address that libvirt would have chosen."""
    root = ET.fromstring(xml)  # noqa: S314
    for slot, interface in enumerate(root.findall("devices/interface"), start=3):
        if interface.find("address") is None:
            ET.SubElement(interface, "address", type="pci", slot=hex(slot))
    return ET.tostring(root, encoding="unicode")
