# SPDX-License-Identifier: Apache-2.0
"""Load the installed generators: the built-in ones and those of other packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any, Final, NoReturn

from stevedore import extension

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.generate.properties import BUILT_IN, Generator
from nova_perfvm.generate.properties.combine import PropertiesError

NAMESPACE: Final = "nova_perfvm.properties"


def load_generators() -> dict[str, Generator]:
    """Return all registered generators by ``name (module:function)``.

    :raises PropertiesError: when a generator cannot be imported
    :raises PerfVMError: when a built-in generator is not registered
    """
    manager = extension.ExtensionManager(
        NAMESPACE, on_load_failure_callback=_raise_load_failure
    )
    # Without entry points (a source tree that is only on the path), flavors would
    # silently lack the extra specs for pinning.
    missing = sorted(BUILT_IN.keys() - manager.names())
    if missing:
        raise PerfVMError(
            f"{', '.join(missing)} of {NAMESPACE} are not registered: install "
            "nova-perfvm again"
        )
    found = {_label(ext.entry_point): ext.plugin for ext in manager.extensions}
    return dict(sorted(found.items()))


def _label(entry_point: EntryPoint) -> str:
    return f"{entry_point.name} ({entry_point.value})"


def _raise_load_failure(
    _manager: Any, entry_point: EntryPoint, exc: BaseException
) -> NoReturn:
    fault = f"cannot be loaded: {type(exc).__name__}: {exc}"
    raise PropertiesError(_label(entry_point), fault) from exc
