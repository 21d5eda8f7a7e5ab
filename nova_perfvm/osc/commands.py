# SPDX-License-Identifier: Apache-2.0
"""The table of all commands, by purpose in the order of the help.

The list of ``nova-perfvm`` is made from this table.  The openstack client finds
commands by entry points alone: setup.cfg lists them, and a unit test compares both.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Final

from cliff.commandmanager import CommandManager

if TYPE_CHECKING:
    from cliff.app import App

# {purpose: {command: module and class, within nova_perfvm.osc}}.
GROUPS: Final = {
    "Every day": {
        "explain": "explain:Explain",
        "audit": "audit:Audit",
        "capacity show": "capacity:ShowCapacity",
        "host list": "host_list:ListHosts",
        "host show": "host_list:ShowHost",
        "map": "overview:DrawMap",
        "plan free": "migrations:PlanFree",
        "plan drain": "migrations:PlanDrain",
        "plan defragment": "migrations:PlanDefragment",
        "server check": "check:CheckServer",
        "metrics": "overview:WriteMetrics",
        "snapshot save": "snapshot:SaveSnapshot",
    },
    "Before a policy is used, and before it changes": {
        "survey": "survey:ShowSurvey",
        "preflight": "elastic:Preflight",
        "policy check": "policy_cloud:CheckCloudPolicy",
        "policy diff": "policy:DiffPolicy",
        "policy show": "policy:ShowPolicy",
        "plan what-if": "what_if:WhatIf",
        "known-bugs": "known_bugs:ListBugs",
    },
    "Flavors, images and limits": {
        "flavor generate": "flavor:GenerateFlavor",
        "flavor sync": "sync:SyncFlavors",
        "image generate": "image:GenerateImage",
        "image sync": "sync:SyncImages",
        "limit generate": "limit:GenerateLimit",
        "limit sync": "sync:SyncLimits",
    },
    "Hosts, and taking changes back": {
        "host config": "host_config:ConfigHost",
        "host playbook": "playbooks:HostPlaybook",
        "host enroll": "elastic:EnrollHost",
        "host unenroll": "elastic:UnenrollHost",
        "align": "align:Align",
        "plan resume": "executing:ResumePlan",
        "rollback": "elastic:Rollback",
    },
    "Measure and prove": {
        "host collect": "collect:CollectHost",
        "host check": "check:CheckHost",
        "guest collect": "collect:CollectGuest",
        "guest check": "check:CheckGuest",
        "prove": "prove:Prove",
        "plan disk": "plan:PlanDisk",
        "bench run": "bench:RunBenchmarks",
        "bench import": "bench:ImportFigures",
        "bench compare": "compare:Compare",
        "fleet playbook": "playbooks:FleetPlaybook",
    },
    "Test": {"tempest config": "tempest:ConfigTempest"},
}
COMMANDS: Final = {name: at for group in GROUPS.values() for name, at in group.items()}
# These commands need a cloud, so the openstack client alone has them.
CLIENT_ONLY: Final = frozenset(
    {
        *("host list", "host show", "host enroll", "host unenroll", "server check"),
        *("snapshot save", "preflight", "flavor sync", "image sync", "limit sync"),
        *("align", "plan resume", "rollback", "prove"),
    }
)
# Classes of ``nova-perfvm`` where the openstack client has another class.
_OFFLINE: Final = {"policy check": "policy:CheckPolicy"}
_REST: Final = "Others"


def offline() -> CommandManager:
    """Return the commands of ``nova-perfvm``; a command's module loads when it runs."""
    found = CommandManager(None)
    for name, at in (COMMANDS | _OFFLINE).items():
        if name not in CLIENT_ONLY:
            found.commands[name] = EntryPoint(name, f"{__package__}.{at}", "")
    return found


def listing(app: App, prefix: str = "") -> str:
    """Return a program's commands by purpose, a line with the description of each.

    :param prefix: commands whose names begin with it are listed, without it
    """
    purposes = {}
    for name, entry in app.command_manager:
        if name.startswith(prefix):
            purpose = entry.load()(app, None, name).get_description()
            short = name.removeprefix(prefix)
            purposes[short] = purpose.split("\n")[0].rstrip(".")
    rest = {_REST: sorted(purposes.keys() - COMMANDS.keys())}
    width = max(map(len, purposes))
    lines = []
    for title, names in (GROUPS | rest).items():
        found = [name for name in names if name in purposes]
        if found:
            lines += ["", f"{title}:"]
            lines += [f"  {name:<{width}}  {purposes[name]}" for name in found]
    return "\n".join([*lines, ""])
