# SPDX-License-Identifier: Apache-2.0
"""Ask Nova's own scheduler about the request that a command line describes."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.dry_run import process
from nova_perfvm.cloud.images import for_nova
from nova_perfvm.diagnose import explain
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.dry_run import Question, SchedulerAnswer
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import PerfVMCommand

NEW_SERVERS: Final[opt.Arguments] = (
    opt.repeated(
        "--hint KEY=VALUE",
        "scheduler hint of the new server, may be repeated (with --from-nova-db)",
    ),
    opt.option(
        "--count NUMBER",
        "number of servers in one request (with --from-nova-db)",
        type=int,
        default=1,
    ),
)


def ask(
    command: PerfVMCommand, parsed_args: argparse.Namespace, snapshot: Snapshot
) -> SchedulerAnswer | None:
    """Return the answer of Nova's scheduler; None without ``--from-nova-db``.

    :param parsed_args: arguments of ``explain``
    :raises PerfVMError: when an option needs ``--from-nova-db``, or Nova's scheduler
        cannot be run here
    """
    nova_conf = parsed_args.from_nova_db
    if nova_conf is None:
        asked = {
            "--ranking": parsed_args.ranking,
            "--hint": parsed_args.hint,
            "--count": parsed_args.count != 1,
        }
        if options := ", ".join(name for name, given in asked.items() if given):
            raise PerfVMError(
                f"{options}: only Nova's own scheduler can answer: use --from-nova-db, "
                "on a controller"
            )
        return None
    return process.ask(nova_conf, _question(command.cloud, parsed_args, snapshot))


def _question(
    api: API, parsed_args: argparse.Namespace, snapshot: Snapshot
) -> Question:
    hints: dict[str, list[str]] = defaultdict(list)
    for text in parsed_args.hint:
        key, separator, value = text.partition("=")
        if not separator:
            raise PerfVMError(f"--hint {text}: expected KEY=VALUE")
        hints[key].append(value)
    common = Question(
        zone=parsed_args.availability_zone,
        project=parsed_args.project,
        every=parsed_args.long,
    )
    if parsed_args.server is not None:
        if hints or parsed_args.count != 1:
            raise PerfVMError(
                "--hint and --count are for a new server: leave them out with --server"
            )
        server = explain.one("server", parsed_args.server, snapshot.servers)
        return replace(common, server=server.id)
    flavor = explain.one("flavor", parsed_args.flavor, snapshot.flavors)
    image = group = None
    if parsed_args.image is not None:
        image = explain.one("image", parsed_args.image, snapshot.images or ())
    if parsed_args.server_group is not None:
        name = parsed_args.server_group
        group = explain.one("server group", name, snapshot.server_groups or ())
    return replace(
        common,
        flavor=flavor.id,
        image=for_nova(api, image.id) if image else None,
        # nova-api boots no image onto a root disk of 0 GB for users.
        volume_backed=parsed_args.boot_from_volume or not flavor.disk_gb,
        group=group.id if group else "",
        hints=dict(hints),
        count=parsed_args.count,
    )


def details(answer: SchedulerAnswer) -> Iterator[str]:
    """Yield the source of each field of the request, and what each prefilter added."""
    by_source: dict[str, list[str]] = defaultdict(list)
    for name, source in answer.sources.items():
        by_source[source].append(name)
    for source, names in by_source.items():
        yield f"request: {source}: {', '.join(sorted(names))}"
    for name, added in answer.added:
        yield f"prefilter {name}: {' '.join(added)}"
