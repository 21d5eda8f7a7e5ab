# SPDX-License-Identifier: Apache-2.0
"""Derive the table of Nova's keys from the installed Nova; print it as YAML.

    python -m tests.nova_keys > nova_perfvm/policy/nova_keys.yaml

Keys that the present table says to be of a later release stay in it.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata

import yaml
from nova.api.validation.extra_specs import validators
from nova.objects import fields
from nova.objects.image_meta import ImageMetaProps

from nova_perfvm.policy import nova_keys

# os-traits and os-resource-classes have these names; perfvm: is the project's own.
ELSEWHERE = re.compile(r"(resources|trait|perfvm).*")
TYPES = {bool: "bool", int: "int", str: "str"}


def extra_specs():
    """Return {name: what its validator takes} of Nova's extra specs."""
    found = {}
    for name, one in validators.VALIDATORS.items():
        if ELSEWHERE.match(name):
            continue
        value = one.value
        takes = {"type": TYPES[value["type"]]}
        takes |= {k: value[k] for k in ("min", "max", "pattern") if k in value}
        if "enum" in value:
            takes["values"] = [str(each) for each in value["enum"]]
        if one.name_regex != name:
            takes["name"] = one.name_regex
        found[name] = takes
    return found


def image_properties():
    """Return {name: what Nova's field takes} of the properties that Nova reads."""
    found = {}
    legacy = {new: old for old, new in ImageMetaProps._legacy_property_map.items()}
    for name, field in ImageMetaProps.fields.items():
        kind = field._type
        # Nova makes lists of properties with other names, such as hw_numa_cpus.0.
        if isinstance(kind, fields.List):
            continue
        takes = {"type": "str"}
        if isinstance(kind, fields.Enum):
            takes["values"] = list(kind._valid_values)
        elif isinstance(field, fields.FlexibleBooleanField):
            takes = {"type": "bool"}
        elif isinstance(field, fields.IntegerField):
            takes = {"type": "int"}
        elif isinstance(field, fields.VersionPredicateField):
            takes = {"type": "versions"}
        if name in legacy:
            takes["legacy"] = legacy[name]
        found[name] = takes
    return found


def release():
    """Return the first number of the installed Nova's version."""
    return int(metadata.version("nova").partition(".")[0])


def derived():
    """Return the table of the installed Nova, with releases of the present table."""
    return {"extra_specs": extra_specs(), "image_properties": image_properties()}


def main():
    """Print the table, with the releases that the present table names."""
    present, found = nova_keys.table(), derived()
    for kind, keys in found.items():
        for name, takes in keys.items():
            since = present.get(kind, {}).get(name, {}).get("since")
            keys[name] = takes | ({"since": since} if since else {})
    head = __doc__.splitlines()
    sys.stdout.write(f"# Made by {head[2].strip()}\n")
    for kind, keys in found.items():
        sys.stdout.write(f"{kind}:\n")
        for name, takes in sorted(keys.items()):
            line = yaml.safe_dump(
                {name: takes}, default_flow_style=True, width=10**6, sort_keys=False
            )
            sys.stdout.write(f"  {line.strip()[1:-1]}\n")


if __name__ == "__main__":
    main()
