# SPDX-License-Identifier: Apache-2.0
"""Lines for a POSIX shell that call the openstack client.

Every text from a policy is quoted; none gets into a comment unquoted.  A block
is a subshell with ``set -eu``: it ends at the first command that fails, and a
terminal into which it is pasted stays open.  Microversions are arguments, not
variables, of which a client that has a server run its commands, like DevStack's
in CI, takes along few.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nova_perfvm.generate.flavors import PolicyFlavor, all_placement_names
from nova_perfvm.microversions import COMPUTE, PLACEMENT_NAMES, VOLUME_TYPE
from nova_perfvm.policy import VMClass

_COMPUTE: Final = f"openstack --os-compute-api-version {COMPUTE}"
_PLACEMENT: Final = f"openstack --os-placement-api-version {PLACEMENT_NAMES}"
# Both commands do no harm to what exists.
_CREATE_NAME: Final = {
    "trait": f"{_PLACEMENT} trait create",
    "resource class": f"{_PLACEMENT} resource class set",
}

_WHY_FIRST: Final = (
    "Placement refuses requests that name a trait or resource class which it",
    "does not know, so these come first; the commands are osc-placement's.",
)

# Of ``--format``, where this is the default.
HELP: Final = (
    "default: %(default)s, commands of the openstack client; properties: their "
    "--property arguments only"
)
_IMAGE: Final = '"$IMAGE"'
_IMAGE_UNSET: Final = ': "${IMAGE:?set IMAGE to the name or ID of the image}"'


def property_arguments(properties: Mapping[str, str]) -> str:
    """Return ``--property KEY=VALUE`` for each, in one line."""
    return shlex.join(
        word
        for key, value in properties.items()
        for word in ("--property", f"{key}={value}")
    )


def flavor_block(flavors: Sequence[PolicyFlavor]) -> str:
    """Return lines that create the flavors that are missing and set all extra specs.

    ``flavor create`` only logs it when setting extra specs fails, so
    ``flavor set`` follows in any case.
    """
    comments = [
        "A flavor that exists keeps its size, which Nova cannot change, and extra",
        f"specs that are not named here. From {COMPUTE} on Nova validates them.",
    ]
    lines = _placement_lines(flavors)
    if lines:
        comments += _WHY_FIRST
    for flavor in flavors:
        name = shlex.quote(flavor.name)
        arguments = property_arguments(flavor.extra_specs)
        size = (
            f"--vcpus {flavor.vcpus} --ram {flavor.memory_mb} --disk {flavor.root_gb}"
        )
        lines += [
            f"openstack flavor show {name} >/dev/null 2>&1 ||",
            f"{_COMPUTE} flavor create {size} {arguments} {name}",
            f"{_COMPUTE} flavor set {arguments} {name}",
        ]
    return _block(comments, lines)


def names_comment(flavors: Sequence[PolicyFlavor]) -> list[str]:
    """Return a comment with what comes before flavors that another tool makes.

    :returns: one text, or none where Placement has to know no names
    """
    commands = _placement_lines(flavors)
    lines = [*_WHY_FIRST, *(f"  {command}" for command in commands)]
    return ["".join(f"# {line}\n" for line in lines)] if commands else []


def image_block(
    properties: Mapping[str, str], image: str | None, classes: Iterable[VMClass]
) -> str:
    """Return the line that sets an image's properties.

    :param image: name or ID; None for the shell variable IMAGE
    :param classes: those whose servers' boot lines follow as comments
    """
    target = _IMAGE if image is None else shlex.quote(image)
    if properties:
        arguments = property_arguments(properties)
        lines = [f"openstack image set {arguments} {target}"]
        block = _block([], lines if image is not None else [_IMAGE_UNSET, *lines])
    else:
        block = "# The image needs no properties.\n"
    return block + "".join(
        _boot_comment(vm_class)
        for vm_class in classes
        if vm_class.disk.source == "volume"
    )


def _placement_lines(flavors: Sequence[PolicyFlavor]) -> list[str]:
    """Return commands that make known to Placement what the flavors name."""
    return [
        f"{_CREATE_NAME[kind]} {name}" for kind, name in all_placement_names(flavors)
    ]


def _block(comments: Iterable[str], lines: Iterable[str]) -> str:
    notes = "".join(f"# {comment}\n" for comment in comments)
    return notes + "\n".join(["(", "set -eu", *lines, ")"]) + "\n"


def _boot_comment(vm_class: VMClass) -> str:
    """Return how a server boots from a volume of the class's type.

    ``--boot-from-volume`` would take the default volume type; the block device
    names its own, which takes a microversion.
    """
    mapping = (
        "source_type=image,uuid=IMAGE_ID,destination_type=volume,boot_index=0,"
        "volume_size=40,delete_on_termination=true"
    )
    if vm_class.disk.volume_type is not None:
        mapping += f",volume_type={vm_class.disk.volume_type}"
    words = shlex.join(["--block-device", mapping])
    line = (
        f"openstack --os-compute-api-version {VOLUME_TYPE} server create "
        f"--flavor FLAVOR --network NETWORK {words} NAME"
    )
    # A text from the policy may have line breaks, a comment must not.
    shown = " ".join(line.split())
    return f"# A server of class {shlex.quote(vm_class.name)} boots so:\n#   {shown}\n"
