# SPDX-License-Identifier: Apache-2.0
"""Policies, flavors and limits as JSON and YAML documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nova_perfvm.documents.yaml_lines import dump_yaml
from nova_perfvm.generate import options
from nova_perfvm.generate.flavors import PolicyFlavor
from nova_perfvm.generate.limits import Limit
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.placement.settings import Setting
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


def limit_document(
    limits: Sequence[Limit], region: str, settings: Sequence[Setting]
) -> dict[str, Any]:
    """Return limits with Keystone's names, and the options for nova.conf."""
    return {
        "region": region,
        "limits": [limit.members for limit in limits],
        "nova_conf": options.by_section(settings, list),
    }


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a document after `change` of each string and each key."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): with_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_texts(item, change) for item in value]
    return value


def as_json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def formats(document: Callable[..., Any]) -> dict[str, Callable[..., str]]:
    """Return the formats "json" and "yaml" of what `document` returns."""
    return {
        "json": lambda *content: as_json(document(*content)),
        "yaml": lambda *content: dump_yaml(document(*content)),
    }


def policy_yaml(policy: Policy) -> str:
    return f"# SHA-256 {policy.digest}\n{dump_yaml(policy.as_document())}"


def policy_json(policy: Policy) -> str:
    """Return the hash, the policy file's keys, and the properties of its scheme."""
    scheme, hosts = scheme_of(policy), host_scheme_of(policy)
    return as_json(
        {
            "digest": policy.digest,
            "policy": policy.as_document(),
            "scheme": {
                "counts": scheme.counts,
                "offers_slots": scheme.offers_slots,
                "enrolls": scheme.enrolls,
                "enrolled_modes": hosts.enrolled_modes,
                "by_slots": hosts.by_slots,
            },
        }
    )
