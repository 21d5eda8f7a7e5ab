# SPDX-License-Identifier: Apache-2.0
"""A script that makes a guest use all queues of its network interfaces.

A shell script for guests that do not do it themselves, as kernels before 4.10 or
so, a unit that runs it whenever the guest starts, and user-data of cloud-init that
installs both.
"""

from __future__ import annotations

from importlib import resources
from typing import Final

import yaml

SCRIPT_PATH: Final = "/usr/local/sbin/perfvm-queues"
UNIT: Final = "perfvm-queues.service"


def script() -> str:
    """Return the shell script, which needs ethtool and root."""
    return _text("queues.sh")


def unit() -> str:
    """Return the unit of systemd."""
    return _text("queues.service")


def user_data() -> str:
    """Return user-data for cloud-init."""
    document = {
        "packages": ["ethtool"],
        "write_files": [
            _file(SCRIPT_PATH, "0755", script()),
            _file(f"/etc/systemd/system/{UNIT}", "0644", unit()),
        ],
        "runcmd": [
            # It would move the vectors together again; a guest that has none is
            # none the worse.
            "systemctl disable --now irqbalance.service || true",
            ["systemctl", "daemon-reload"],
            ["systemctl", "enable", UNIT],
            ["systemctl", "restart", UNIT],
        ],
    }
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=88)
    return f"#cloud-config\n{text}"


def _file(path: str, permissions: str, content: str) -> dict[str, str]:
    return {
        "path": path,
        "owner": "root:root",
        "permissions": permissions,
        "content": content,
    }


def _text(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text()


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines so that people can read them."""


def _as_it_is(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _as_it_is)
