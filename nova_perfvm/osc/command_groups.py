# SPDX-License-Identifier: Apache-2.0
"""Groups of commands by purpose, in the order of the help: everyday commands first."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from nova_perfvm.osc.base import PerfVMCommand

if TYPE_CHECKING:
    from cliff.app import App

GROUPS: Final = {
    "Every day": (
        *("explain", "audit", "capacity show", "host list", "host show", "map"),
        *("plan free", "plan drain", "plan defragment", "server check", "metrics"),
        "snapshot save",
    ),
    "Before a policy is used, and before it changes": (
        *("survey", "preflight", "policy check", "policy diff", "policy show"),
        *("plan servers", "plan what-if", "known-bugs"),
    ),
    "Flavors, images and limits": (
        *("flavor generate", "flavor sync", "image generate", "image sync"),
        *("limit generate", "limit sync"),
    ),
    "Hosts, and taking changes back": (
        *("host config", "host playbook", "host enroll", "host unenroll", "align"),
        *("plan resume", "rollback"),
    ),
    "Measure and prove": (
        *("host collect", "host check", "guest collect", "guest check"),
        *("prove", "bench run", "bench import", "bench compare"),
        "fleet playbook",
    ),
    "Test": ("tempest config",),
}
_REST: Final = "Others"


def listing(app: App, prefix: str = "") -> str:
    """Return a program's commands by group, a line with the purpose of each.

    :param prefix: commands whose names begin with it are listed, without it
    """
    purposes = {}
    for name, entry in app.command_manager:
        if name.startswith(prefix):
            purpose = entry.load()(app, None, name).get_description()
            short = name.removeprefix(prefix)
            purposes[short] = purpose.split("\n")[0].rstrip(".")
    grouped = {name for names in GROUPS.values() for name in names}
    rest = {_REST: tuple(sorted(purposes.keys() - grouped))}
    width = max(map(len, purposes))
    lines = []
    for title, names in (GROUPS | rest).items():
        found = [name for name in names if name in purposes]
        if found:
            lines += ["", f"{title}:"]
            lines += [f"  {name:<{width}}  {purposes[name]}" for name in found]
    return "\n".join([*lines, ""])


class ShowHelp(PerfVMCommand):
    """List all perfvm commands with their purpose, everyday commands first."""

    def take_action(self, _parsed_args: argparse.Namespace) -> None:
        self.write("openstack perfvm COMMAND (--help has its options)\n")
        self.write(listing(self.app, "perfvm "))
