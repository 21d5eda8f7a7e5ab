# SPDX-License-Identifier: Apache-2.0
"""Provider config files, as nova-compute reads them (nova.compute.provider_config)."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

import jsonschema
import yaml
from jsonschema.exceptions import best_match

from nova_perfvm.facts.hypervisor import ProviderEntry, ProviderFiles


def read(
    files: Mapping[str, str], refusal: Callable[[Mapping[str, str]], str]
) -> ProviderFiles:
    """Return what files, {path: text}, add to providers.

    :param refusal: returns why nova-compute does not start with files, as
        :func:`refusal_of` does; empty if it does
    """
    if refused := refusal(files):
        return ProviderFiles({}, ", ".join(files), refused)
    entries: dict[str, ProviderEntry] = {}
    for text in files.values():
        entries.update(_entries(yaml.safe_load(text)))
    return ProviderFiles(entries, ", ".join(files))


@cache
def _validator() -> jsonschema.Draft202012Validator:
    schema = resources.files(__package__).joinpath("schema.yaml").read_text("utf-8")
    return jsonschema.Draft202012Validator(yaml.safe_load(schema))


def refusal_of(files: Mapping[str, str]) -> str:
    """Return why nova-compute does not start with files, by a schema of our own.

    :param files: {path: text}
    :returns: empty if it starts
    """
    seen: dict[str, str] = {}
    for path, text in sorted(files.items()):
        try:
            document = yaml.safe_load(text)
            fault = best_match(_validator().iter_errors(document))
        except (yaml.YAMLError, ValueError, TypeError, RecursionError) as exc:
            return f"{path} cannot be read: {textwrap.shorten(str(exc), 300)}"
        if fault is not None:
            message = textwrap.shorten(fault.message, 300)
            return f"{path} did not pass validation: {fault.json_path}: {message}"
        for key, _ in _entries(document):
            if key in seen:
                return f"provider {key} is defined in {seen[key]} and again in {path}"
            seen[key] = path
    return ""


def _entries(document: Mapping[str, Any]) -> Iterator[tuple[str, ProviderEntry]]:
    """Yield (provider's name or UUID, what a file adds) where a file adds something."""
    for provider in document.get("providers", ()):
        traits, items = (
            provider.get(kind, {}).get("additional", ())
            for kind in ("traits", "inventories")
        )
        totals = {name: int(i["total"]) for item in items for name, i in item.items()}
        if traits or items:
            (key,) = provider["identification"].values()
            yield key, ProviderEntry(totals, frozenset(traits))
