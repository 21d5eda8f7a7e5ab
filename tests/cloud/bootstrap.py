# SPDX-License-Identifier: Apache-2.0
"""What must be in place before the first module of Nova is imported."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os

from nova_perfvm import constants as const
from nova_perfvm.exceptions import PerfVMError
from tests import nova_differences


def prepare() -> None:
    """Choose native threads where Nova's fixtures work in them, or eventlet.

    :raises PerfVMError: when the extra is not installed
    """
    needed = ("fixtures", "nova", "oslotest", "placement", "wsgi_intercept")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise PerfVMError(
            f"the in-process cloud needs {', '.join(missing)}: "
            f"pip install '{const.PACKAGE}[sandbox]'"
        )
    # Wheels put it under the prefix (<venv>/etc/nova), where Nova does not look.
    for path in importlib.metadata.distribution("nova").files or ():
        if path.name == "api-paste.ini":
            os.environ.setdefault("OS_WSGI__API_PASTE_CONFIG", str(path.locate()))
    nova_differences.choose_threads()


prepare()
