# SPDX-License-Identifier: Apache-2.0
"""Lines for a POSIX shell that call the openstack client.

Every text from a policy is quoted, in comments, too.  A block is a subshell with ``set
-eu``: it ends at the first command that fails, and a terminal into which the block is
pasted stays open.  Microversions are arguments, not variables: a client that runs
commands on a server (DevStack's in CI) passes on few variables.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nova_perfvm.generate.flavors import PolicyFlavor, placement_names
from nova_perfvm.generate.limits import Limit
from nova_perfvm.microversions import COMPUTE, PLACEMENT_NAMES

_COMPUTE: Final = f"openstack --os-compute-api-version {COMPUTE}"
_PLACEMENT: Final = f"openstack --os-placement-api-version {PLACEMENT_NAMES}"
# Both commands leave an existing trait or resource class as it is.
_CREATE_NAME: Final = {
    "trait": f"{_PLACEMENT} trait create",
    "resource class": f"{_PLACEMENT} resource class set",
}

_WHY_FIRST: Final = (
    "Placement refuses requests that name an unknown trait or resource class, so",
    "these commands of osc-placement come first.",
)

# Comment above the limits.
_LIMITS_FIRST: Final = (
    "Nova enforces these limits with the options that --format nova-conf prints. A",
    "registered limit cannot be set while projects have limits of their own.",
)
_IMAGE_UNSET: Final = ': "${IMAGE:?set IMAGE to the name or ID of the image}"'


def property_arguments(properties: Mapping[str, str]) -> str:
    return shlex.join(
        word
        for key, value in properties.items()
        for word in ("--property", f"{key}={value}")
    )


def flavor_properties(flavors: Sequence[PolicyFlavor]) -> str:
    """Return a line of --property arguments for each set of extra specs.

    If there are several lines, a comment above each names the class; it names the
    flavors, too, if flavors of the class have extra specs of their own.
    """
    names: dict[tuple[str, str], list[str]] = {}
    for flavor in flavors:
        line = property_arguments(flavor.extra_specs)
        names.setdefault((flavor.class_name, line), []).append(flavor.name)
    lines = Counter(class_name for class_name, _ in names)
    text = ""
    for (class_name, line), of_line in names.items():
        own = f": {', '.join(of_line)}" if lines[class_name] > 1 else ""
        comment = f"# class {class_name}{own}\n" if len(names) > 1 else ""
        text += f"{comment}{line}\n"
    return text


def flavor_block(flavors: Sequence[PolicyFlavor]) -> str:
    """Return lines that create missing flavors and set the extra specs of all.

    If setting extra specs fails, ``flavor create`` only logs the error, so ``flavor
    set`` follows in any case.
    """
    comments = [
        "An existing flavor keeps its size, which Nova cannot change, and its other",
        f"extra specs. From microversion {COMPUTE} on Nova validates extra specs.",
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


def names_first(flavors: Sequence[PolicyFlavor]) -> list[str]:
    """Return the commands that create traits and resource classes, and why.

    Another tool, such as Terraform, creates the flavors afterwards.

    :returns: lines of text and commands; none where the flavors name none
    """
    commands = _placement_lines(flavors)
    return [*_WHY_FIRST, *(f"  {line}" for line in commands)] if commands else []


def image_block(properties: Mapping[str, str]) -> str:
    """Return lines that set the properties of the image in the variable IMAGE."""
    if not properties:
        return "# The image needs no properties.\n"
    arguments = property_arguments(properties)
    return _block([], [_IMAGE_UNSET, f'openstack image set {arguments} "$IMAGE"'])


def limit_block(limits: Sequence[Limit], region: str) -> str:
    """Return lines that create missing limits, and set existing ones."""
    lines: list[str] = []
    for limit in limits:
        project = ("--project", limit.project) if limit.project else ()
        at = shlex.join(["--service", "nova", "--region", region, *project])
        value = f"--{limit.field.replace('_', '-')} {limit.value}"
        column = limit.field.replace("_", " ").title()
        seen = f"openstack {limit.kind} list {at} --resource-name {limit.resource}"
        lines += [
            f"case \"$({seen} -f value -c '{column}')\" in",
            f"'') openstack {limit.kind} create {at} {value} {limit.resource} ;;",
        ]
        if not limit.keeps:
            lines += [
                f"{limit.value}) ;;",
                f'*) openstack {limit.kind} set {value} "$({seen} -f value -c ID)" ;;',
            ]
        lines.append("esac")
    return _block(_LIMITS_FIRST, lines)


def _placement_lines(flavors: Sequence[PolicyFlavor]) -> list[str]:
    """Return commands that create the flavors' traits and resource classes."""
    return [f"{_CREATE_NAME[kind]} {name}" for kind, name in placement_names(flavors)]


def _block(comments: Iterable[str], lines: Iterable[str]) -> str:
    notes = "".join(f"# {comment}\n" for comment in comments)
    return notes + "\n".join(["(", "set -eu", *lines, ")"]) + "\n"
