# SPDX-License-Identifier: Apache-2.0
"""The generators that are installed: the built-in ones and an operator's."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any, Final, NoReturn

from stevedore import extension

from nova_perfvm.generate.properties import BUILT_IN, Generator
from nova_perfvm.generate.properties.combine import PropertiesError

NAMESPACE: Final = "nova_perfvm.properties"


def load_generators() -> dict[str, Generator]:
    """Return all registered generators by ``name (module:function)``.

    :raises PropertiesError: when one cannot be imported, is no function, or a
        built-in one is not registered
    """
    manager = extension.ExtensionManager(
        NAMESPACE, on_load_failure_callback=_raise_load_failure
    )
    found = sorted(
        (_label(ext.entry_point), ext.name, ext.plugin) for ext in manager.extensions
    )
    return check_generators(found)


def check_generators(found: list[tuple[str, str, Any]]) -> dict[str, Generator]:
    """Return generators by label, from ``(label, name, plugin)`` of each.

    :raises PropertiesError: as :func:`load_generators`
    """
    for label, _, plugin in found:
        if not callable(plugin):
            raise PropertiesError(
                label, f"is a {type(plugin).__name__}, expected a function"
            )
    # Without entry points (a source tree that is only on the path) there would
    # be flavors without pinning, which look as good as others.
    missing = sorted(set(BUILT_IN) - {name for _, name, _ in found})
    if missing:
        raise PropertiesError(
            ", ".join(missing), "is not registered", "install nova-perfvm again"
        )
    return {label: plugin for label, _, plugin in found}


def _label(entry_point: EntryPoint) -> str:
    return f"{entry_point.name} ({entry_point.value})"


def _raise_load_failure(
    _manager: Any, entry_point: EntryPoint, exc: BaseException
) -> NoReturn:
    fault = f"cannot be loaded: {type(exc).__name__}: {exc}"
    raise PropertiesError(_label(entry_point), fault) from exc
