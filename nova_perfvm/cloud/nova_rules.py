# SPDX-License-Identifier: Apache-2.0
"""Judge provider config files and keys as Nova does, by its code if installed."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.measure import provider_config as our_own
from nova_perfvm.policy import Policy, nova_keys
from nova_perfvm.printable import first_line


def refusal_of(files: Mapping[str, str]) -> str:
    """Return the reason why nova-compute does not start with provider config files.

    :param files: {path: text}
    :returns: Nova's message; empty if nova-compute starts
    """
    try:
        from nova.compute import provider_config  # noqa: PLC0415
    except ImportError:
        return our_own.refusal_of(files)
    with tempfile.TemporaryDirectory() as directory:
        try:
            for path, text in files.items():
                (Path(directory) / Path(path).name).write_text(text, encoding="utf-8")
            provider_config.get_provider_configs(directory)
        # Nova catches some mistakes only; nova-compute ends at any other exception.
        except Exception as exc:  # noqa: BLE001
            return first_line(exc).replace(f"{directory}/", "")
    # Nova's code does not find mistakes that fail later, when nova-compute adds up
    # inventories; our own rules do.
    return our_own.refusal_of(files)


def key_mistakes(policy: Policy) -> Iterator[Mistake]:
    """Yield the keys of a policy's classes that Nova refuses, or reads no value of.

    The installed Nova is asked, or else the table of
    :mod:`nova_perfvm.policy.nova_keys`.
    """
    for vm_class in policy.classes:
        for path, keys in vm_class.own_keys():
            kind: nova_keys.Kind = (
                "image_properties" if "image_properties" in path else "extra_specs"
            )
            for key, value in keys.items():
                if why := _fault(kind, key, value):
                    where = ("classes", vm_class.name, *path, key)
                    yield Mistake(where, f"found {value!r}: {why}")


def _fault(kind: nova_keys.Kind, key: str, value: str) -> str | None:
    listed = nova_keys.fault(kind, key, value)
    try:
        exception, validators, image_meta = _novas_validators()
    except ImportError:
        return listed
    try:
        if kind == "extra_specs":
            validators.validate(key, value)
            return None
        seen = image_meta.ImageMeta.from_dict({"properties": {key: value}}).properties
    except (exception.NovaException, ValueError, TypeError) as exc:
        first = nova_keys.since(kind, key)
        release = f"; Nova has it from {first} on" if first else ""
        return (listed or first_line(exc)) + release
    # Nova drops properties that it does not know, and reads any text as a boolean.
    known = key in nova_keys.table()[kind] or key not in seen
    return listed if known else None


def _novas_validators() -> tuple[Any, Any, Any]:
    """Import Nova's validators, whose modules warn and log.

    :raises ImportError: Nova is not installed
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.ERROR)
        try:
            from nova import exception  # noqa: PLC0415
            from nova.api.validation.extra_specs import validators  # noqa: PLC0415
            from nova.objects import image_meta  # noqa: PLC0415
        finally:
            logging.disable(logging.NOTSET)
    return exception, validators, image_meta
