# SPDX-License-Identifier: Apache-2.0
"""A script that makes a guest use all queues of its network interfaces.

Kernels before about 4.10 do not enable all queues themselves.  The package holds the
shell script, a systemd unit that runs the script at boot, and cloud-init user-data
that installs both.
"""

from __future__ import annotations

import string
import textwrap
from importlib import resources


def script() -> str:
    """Return the shell script, which needs ethtool and root."""
    return _text("queues.sh")


def unit() -> str:
    """Return the unit of systemd."""
    return _text("queues.service")


def user_data() -> str:
    """Return user-data for cloud-init."""
    texts = {"script": script(), "unit": unit()}
    indented = {k: textwrap.indent(text, "    ").strip() for k, text in texts.items()}
    return string.Template(_text("user-data.yaml")).substitute(indented)


def _text(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text()
