# SPDX-License-Identifier: Apache-2.0
"""``limit generate``, and the arguments that it shares with ``limit sync``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Final

from nova_perfvm.generate.formats import document, shell
from nova_perfvm.generate.hosts import rendering
from nova_perfvm.generate.limits import (
    LOOKS_UP,
    Limit,
    LimitError,
    limits_of,
    settings_of,
)
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import PolicyCommand
from nova_perfvm.placement.settings import Setting
from nova_perfvm.policy import Policy

LIMIT_ARGUMENTS: Final = (
    opt.repeated(
        "--default CLASS=N",
        "limit of VMs of the class for each project, -1 for unlimited; may be "
        "repeated (default: the present limit, else unlimited); under units, classes "
        "with shared CPUs may be named, too",
    ),
    opt.repeated(
        "--project ID CLASS=N",
        "limit for this project in place of the default; may be repeated",
        dest="projects",
        nargs=2,
    ),
)


def limits_from(policy: Policy, parsed_args: argparse.Namespace) -> tuple[Limit, ...]:
    """Return the limits of LIMIT_ARGUMENTS.

    :raises PerfVMError: when a value is no number of VMs, or the policy cannot limit
        the class
    """
    numbers: dict[str, dict[str, int]] = {"": {}}
    for project, text in (
        *(("", text) for text in parsed_args.default),
        *parsed_args.projects,
    ):
        name, _, number = text.rpartition("=")
        if not name or not re.fullmatch(r"-1|[0-9]{1,9}", number):
            raise LimitError(f"{text!r}: expected CLASS=N, N VMs or -1 for any number")
        numbers.setdefault(project, {})[name] = int(number)
    return limits_of(policy, numbers.pop(""), numbers)


_Format = Callable[[Sequence[Limit], str, Sequence[Setting]], str]

_FORMATS: Final[dict[str, _Format]] = {
    "shell": lambda limits, region, _: shell.limit_block(limits, region),
    "nova-conf": lambda _limits, _region, settings: rendering.ini(settings),
    **document.formats(document.limit_document),
}


class GenerateLimit(PolicyCommand):
    """Print Keystone's limits that count a policy's high-performance VMs."""

    arguments = (
        *LIMIT_ARGUMENTS,
        opt.option(
            "--region ID",
            "region of Nova's endpoint (default: %(default)s)",
            default="RegionOne",
        ),
        opt.option(
            "--endpoint ID",
            "ID of Nova's endpoint in the region, for nova.conf; required before "
            f"{LOOKS_UP}",
        ),
        opt.formats(
            _FORMATS,
            "default: %(default)s, commands of the openstack client; nova-conf: "
            "options for the nova.conf of nova-api and nova-conductor",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        limits = limits_from(self.policy(parsed_args), parsed_args)
        region = parsed_args.region
        settings = settings_of(limits, region, parsed_args.endpoint)
        self.write(_FORMATS[parsed_args.format](limits, region, settings))
