# SPDX-License-Identifier: Apache-2.0
"""Commands whose modules are imported only when the command is run.

The client resolves the entry points of all commands at each call, whatever the
command.  The entry point ``nova_perfvm.osc.deferred:audit.Audit`` names the class
``Audit`` of the module ``nova_perfvm.osc.audit``; resolving the entry point imports
only this module.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nova_perfvm.osc.base import PerfVMCommand


class DeferredCommand:
    """Stand-in for a command's class: a call imports the class and makes the command.

    :cvar module: the module of the command's class
    :cvar name: the name of the class
    """

    module: str
    name: str

    def __new__(cls, app: Any, app_args: Any, cmd_name: str | None = None) -> Any:
        return cls.command()(app, app_args, cmd_name)

    def __init__(self, app: Any, app_args: Any, cmd_name: str | None = None) -> None:
        """Do nothing: cliff reads a command's arguments from this signature."""

    @classmethod
    def command(cls) -> type[PerfVMCommand]:
        found: type[PerfVMCommand] = getattr(
            importlib.import_module(cls.module), cls.name
        )
        return found


class _Module:
    """Stand-in for a module of commands, which a command's run imports."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> type[DeferredCommand]:
        members = {"module": self._name, "name": name, "__module__": __name__}
        return type(name, (DeferredCommand,), members)


def __getattr__(name: str) -> _Module:
    if name.startswith("_"):
        raise AttributeError(name)
    return _Module(f"{__package__}.{name}")
