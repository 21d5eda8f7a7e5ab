# SPDX-License-Identifier: Apache-2.0
"""Judge provider config files as nova-compute does, by its code if installed."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from nova_perfvm.measure import provider_config as our_own
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
