# SPDX-License-Identifier: Apache-2.0
"""What must be in place before the first module of Nova is imported."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from typing import TYPE_CHECKING

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.sandbox import releases

if TYPE_CHECKING:
    from collections.abc import Iterable

INSTALL = "pip install 'nova-perfvm[sandbox]'"


class SandboxNotInstalledError(PerfVMError):
    """A distribution that the in-process cloud is made of is missing.

    :ivar missing: names of the modules that cannot be imported
    """

    def __init__(self, missing: Iterable[str]) -> None:
        self.missing = tuple(missing)
        super().__init__(
            f"the in-process cloud needs {', '.join(missing)}: {INSTALL}",
        )


def missing_modules() -> list[str]:
    """Return the names of needed modules that are not installed, sorted."""
    needed = ("fixtures", "nova", "oslotest", "placement", "wsgi_intercept")
    return sorted(n for n in needed if importlib.util.find_spec(n) is None)


def paste_config() -> str:
    """Return the path of the api-paste.ini that Nova's distribution installed.

    Wheels put it under the prefix (<venv>/etc/nova), where Nova itself does
    not look unless told.
    """
    for path in importlib.metadata.distribution("nova").files or ():
        if path.name == "api-paste.ini":
            return str(path.locate())
    raise SandboxNotInstalledError(["nova (its api-paste.ini)"])


def prepare() -> None:
    """Choose native threads where Nova's fixtures work in them, or eventlet.

    :raises SandboxNotInstalledError: when the extra is not installed
    """
    missing = missing_modules()
    if missing:
        raise SandboxNotInstalledError(missing)
    os.environ.setdefault("OS_WSGI__API_PASTE_CONFIG", paste_config())
    releases.choose_threads()


prepare()
