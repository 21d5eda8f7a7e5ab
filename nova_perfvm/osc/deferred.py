# SPDX-License-Identifier: Apache-2.0
"""Commands that are imported when one of them is run.

The client resolves the entry points of all commands at each call, whatever the
command.  Those of this package are ``nova_perfvm.osc.deferred:audit.Audit``: the class
``Audit`` of the module ``nova_perfvm.osc.audit``, which is not imported by that.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nova_perfvm.osc.base import PerfVMCommand


class DeferredCommand:
    """Stands for a command's class; called, it imports the class and returns a command.

    :cvar module: the module of the class
    :cvar name: its name there
    """

    module: str
    name: str

    def __new__(cls, app: Any, app_args: Any, cmd_name: str | None = None) -> Any:
        """Return a command."""
        return cls.command()(app, app_args, cmd_name)

    def __init__(self, app: Any, app_args: Any, cmd_name: str | None = None) -> None:
        """Do nothing: here cliff looks which arguments a command takes."""

    @classmethod
    def command(cls) -> type[PerfVMCommand]:
        """Import the class."""
        found: type[PerfVMCommand] = getattr(
            importlib.import_module(cls.module), cls.name
        )
        return found


class _Module:
    """A module of commands, not imported."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> type[DeferredCommand]:
        members = {"module": self._name, "name": name, "__module__": __name__}
        return type(name, (DeferredCommand,), members)


def __getattr__(name: str) -> _Module:
    if name.startswith("_"):
        raise AttributeError(name)
    return _Module(f"{__package__}.{name}")
