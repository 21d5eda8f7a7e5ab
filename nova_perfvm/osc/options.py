# SPDX-License-Identifier: Apache-2.0
"""Arguments of commands: how a command declares them, and those that many share."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from operator import methodcaller
from typing import Any, Final

from nova_perfvm.policy import loader

# What `python -m tests.sandbox openrc` sets, too.
POLICY_VARIABLE: Final = "PERFVM_POLICY"

# An argument of a command: called with the parser, it adds itself.
Argument = Callable[[Any], object]
Arguments = tuple[Argument, ...]


def option(name: str, help: str, **keywords: Any) -> Argument:  # noqa: A002
    """Return an argument of argparse.

    Placeholders of its help, such as ``%(default)s``, are filled in here, because the
    reference pages print help texts unformatted.

    :param name: the argument as a synopsis shows it, such as "--count N", "-f --format"
        or "hosts HOST": names of the option or of the value, and words for the values
    :param keywords: those of argparse
    """
    words = name.split()
    names = [word for word in words if word.startswith("-")] or words[:1]
    if metavars := words[len(names) :]:
        several = len(metavars) > 1
        keywords["metavar"] = tuple(metavars) if several else metavars[0]
    known = {"default": None, "const": None} | keywords
    keywords["help"] = (help % known).replace("%", "%%")
    return methodcaller("add_argument", *names, **keywords)


def flag(name: str, help: str) -> Argument:  # noqa: A002 - argparse's name
    return option(name, help, action="store_true")


def file(name: str, help: str, **keywords: Any) -> Argument:  # noqa: A002
    """Return an argument for a path, which must not be empty."""
    return option(name, help, **{"type": file_path, "metavar": "FILE"} | keywords)


def repeated(name: str, help: str, **keywords: Any) -> Argument:  # noqa: A002
    """Return an option whose repeated values make a list."""
    return option(name, help, action="append", default=[], **keywords)


def one_of(*arguments: Argument, required: bool = False) -> Argument:
    def add(parser: Any) -> None:
        group = parser.add_mutually_exclusive_group(required=required)
        for add_to in arguments:
            add_to(group)

    return add


def file_path(text: str) -> str:
    """Take a path from the command line.

    :raises argparse.ArgumentTypeError: for an empty path, which a shell makes of an
        unset variable, and which would mean the current directory
    """
    if not text:
        raise argparse.ArgumentTypeError("an empty path: give one, or leave it out")
    return text


def positive(text: str) -> float:
    """Take a number above 0 from the command line.

    :raises argparse.ArgumentTypeError: for anything else
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number above 0")
    return value


def count(text: str) -> int:
    """Take a whole number above 0 from the command line.

    :raises argparse.ArgumentTypeError: for anything else
    """
    if not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number above 0")
    return int(text)


def count_or_0(text: str) -> int:
    """Take a whole number from the command line; see :func:`count`."""
    return 0 if text == "0" else count(text)


def formats(choices: Iterable[str], help: str) -> Argument:  # noqa: A002
    """Return ``--format`` of a command that prints a text; the first is the default."""
    first, *_ = choices = tuple(choices)
    return option("-f --format", help, choices=choices, default=first)


def vm_class(
    help: str = "only this class (default: all of the policy)",  # noqa: A002
) -> Argument:
    return option("--class NAME", help, dest="class_name")


def collected(meaning: str) -> Argument:
    """Return the option ``--collected``, which names files of ``host collect``.

    :param meaning: end of the help text: the command's use of the file
    """
    return repeated(
        "--collected FILE",
        f"file of nova-perfvm host collect, written on a host; {meaning}",
        type=file_path,
    )


POLICY: Final = option(
    "--policy FILE",
    f"policy file, {loader.BUILT_IN_NAME} for the built-in policy (default: the "
    f"variable {POLICY_VARIABLE}, else the built-in policy)",
)
POLICY_FILE: Final = option(
    "file FILE", "policy file (default: that of --policy)", nargs="?"
)
POLICY_CHANGED: Final = flag(
    "--policy-changed",
    "accept a policy other than the one recorded on the cloud, and record it",
)
OUTPUT: Final = file(
    "--output", "write to this file, which is replaced, instead of printing"
)
NOVA_CONF: Final = file(
    "--nova-conf",
    "copy of nova-scheduler's nova.conf, as no API shows its options (default: checks "
    "of options are unknown; verdicts assume the options that the policy needs)",
)
PLACEMENT_CONF: Final = file(
    "--placement-conf",
    "placement.conf, whose options no API shows",
)
SNAPSHOT: Final = file(
    "--snapshot",
    "read this file of openstack perfvm snapshot save (- for standard input), not the "
    "cloud",
)
NOVA_DB: Final = option(
    "--from-nova-db NOVA_CONF",
    "read the hosts' NUMA nodes and PCI devices from Nova's database, as "
    "nova-scheduler does: on a controller, where Nova is installed (default file: "
    "%(const)s)",
    nargs="?",
    const="/etc/nova/nova.conf",
)
# Where a command reads a cloud's hosts, if not from the APIs alone.
SOURCE: Final = one_of(SNAPSHOT, NOVA_DB)
INVENTORY: Final = file(
    "--inventory",
    "inventory file with the NUMA nodes of hosts, used for hosts whose NUMA nodes were "
    "not read from Nova's database",
)
MAX_RATIO: Final = option(
    "--max-ratio N",
    "let general servers come to hosts only up to N vCPUs for each CPU (default: the "
    "allocation ratio in Placement)",
    type=positive,
)
STRICT: Final = flag("--strict", "exit with 1 for unknown results, too")
YES: Final = flag("--yes", "ask no question")
CHANGING: Final = one_of(flag("--dry-run", "only show the changes"), YES)
DELETE_CHILDREN: Final = flag(
    "--delete-children",
    "also delete the empty providers that earlier runs have left",
)
HOSTS: Final = option("hosts HOST", "compute hosts, by name", nargs="+")
# A new server's properties beside its flavor.
REQUEST: Final[Arguments] = (
    option("--image IMAGE", "boot from this image"),
    flag(
        "--boot-from-volume",
        "the root disk is a volume (default: if the flavor's disk is 0)",
    ),
    option("--availability-zone ZONE", "requested availability zone", default=""),
    option("--project ID", "ID of the server's project", default=""),
    option("--server-group GROUP", "server group of the new server, by name or ID"),
)
