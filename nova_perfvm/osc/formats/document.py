# SPDX-License-Identifier: Apache-2.0
"""JSON, YAML and a table for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from nova_perfvm.generate.flavors import PolicyFlavor
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Policy


def flavor_documents(flavors: Iterable[PolicyFlavor]) -> list[dict[str, Any]]:
    """Return flavors as mappings, with Nova's names and units."""
    return [
        {
            "name": flavor.name,
            "class": flavor.class_name,
            "vcpus": flavor.vcpus,
            "memory_mb": flavor.memory_mb,
            "root_gb": flavor.root_gb,
            "extra_specs": dict(flavor.extra_specs),
        }
        for flavor in flavors
    ]


def resource_values(flavor: PolicyFlavor) -> dict[str, Any]:
    """Return a flavor by the names that Ansible, Terraform and Heat have for its parts.

    All flavors of a policy are everybody's, and have no disks beside the root disk.
    """
    return {
        "name": flavor.name,
        "ram": flavor.memory_mb,
        "vcpus": flavor.vcpus,
        "disk": flavor.root_gb,
        "ephemeral": 0,
        "swap": 0,
        "is_public": True,
        "extra_specs": dict(flavor.extra_specs),
    }


def as_json(document: Any) -> str:
    """Return JSON, keys in the document's order."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def as_yaml(document: Any) -> str:
    """Return YAML, keys in the document's order."""
    text: str = yaml.safe_dump(document, sort_keys=False, width=88, allow_unicode=True)
    return text


def policy_yaml(policy: Policy) -> str:
    """Return a policy file, with the policy's hash as a comment."""
    return f"# SHA-256 {policy.digest}\n{as_yaml(policy.as_document())}"


def policy_json(policy: Policy) -> str:
    """Return the hash, the policy file's keys, and what its placement means."""
    scheme = scheme_of(policy)
    return as_json(
        {
            "digest": policy.digest,
            "policy": policy.as_document(),
            "scheme": {
                "counts": scheme.counts,
                "offers_slots": scheme.offers_slots,
                "enrolls": scheme.enrolls,
            },
        }
    )


def policy_table(policy: Policy) -> str:
    """Return a line for each key of the policy file that has a value."""
    rows = [("digest", policy.digest), *_flatten(policy.as_document(), "")]
    width = max(len(key) for key, _ in rows)
    return "".join(f"{key:<{width}}  {value}\n" for key, value in rows)


def _flatten(document: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for key, value in document.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{path}{key}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for index, item in enumerate(value):
                yield from _flatten(item, f"{path}{key}.{index}.")
        elif isinstance(value, list) and value:
            yield path + key, ", ".join(map(str, value))
        elif value != []:
            yield path + key, value if isinstance(value, str) else json.dumps(value)
