# SPDX-License-Identifier: Apache-2.0
"""How often Placement grants more than it has, on a MariaDB that this starts.

Several processes, each the Placement that can be imported here, are asked for 20
PCPU each of one provider of 40, all at once; then the provider's usage is read.  Two
of them have room.  Rows differ in the isolation level, in MariaDB's snapshot
isolation and in [placement]allocation_conflict_retry_count.

    python -m tests.benchmark.overgranting [--rounds N] [--processes N]

MariaDB runs in a directory of its own, on a port of 127.0.0.1 that nobody uses,
and is gone afterwards.  Nothing of Placement but its WSGI application is called:
install a patched one, and run this again.
"""

import argparse
import importlib.metadata
import itertools
import os
import platform
import sys
import tempfile
import uuid
from concurrent import futures
from pathlib import Path

import placement

from tests.benchmark.command import positive, status_of, tell
from tests.benchmark.database import Database
from tests.benchmark.placements import Placement

# The two that databases have by default.
LEVELS = ("REPEATABLE READ", "READ COMMITTED")
RETRIES = (10, 1)
PACKAGES = ("openstack-placement", "oslo.db", "SQLAlchemy", "PyMySQL")
CAPACITY, CLAIM = 40, 20
DONE, REFUSED = 204, 409
LINE = "{:18}{:20}{:>7}{:>13}{:>11}{:>9}{:>9}{:>8}\n"
HEAD = (
    *("isolation level", "snapshot isolation", "retries", "rounds over"),
    *("most used", "granted", "refused", "failed"),
)


def measured(options):
    """Print the table, measured on servers that are there for that long."""
    with (
        tempfile.TemporaryDirectory(prefix="overgranting-") as directory,
        Database(directory) as database,
    ):
        write = sys.stdout.write
        versions = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
        write(f"{', '.join(versions)}, Python {platform.python_version()}\n")
        write(f"MariaDB {database.version}, {len(os.sched_getaffinity(0))} CPUs\n")
        write(f"Placement is that of {Path(placement.__file__).parents[1]}\n")
        write(
            f"{options.processes} processes ask a provider of {CAPACITY} PCPU for "
            f"{CLAIM} each at once, {options.rounds} rounds\n\n{LINE.format(*HEAD)}"
        )
        isolated = ("OFF", "ON") if database.has_snapshot_isolation else ("none",)
        for setting in itertools.product(LEVELS, isolated, RETRIES):
            used, statuses = tally(database, *setting, options)
            write(LINE.format(*setting, *cells(used, statuses)))
            sys.stdout.flush()


def tally(database, level, isolated, retries, options):
    """Return the PCPU in use after each round, and the statuses of all claims."""
    used, statuses = [], []
    database.configure(level, snapshot_isolation=isolated == "ON")
    with Placement(
        database,
        workers=options.processes,
        options={"allocation_conflict_retry_count": retries},
    ) as service:
        for number in range(options.rounds):
            found = play(service, options.processes)
            used.append(found[0])
            statuses += found[1]
            tell(f"{level}, {isolated}, {retries}: {number + 1} of {options.rounds}")
    tell("")
    return used, statuses


def cells(used, statuses):
    """Return what a row says of the rounds."""
    over = sum(each > CAPACITY for each in used)
    granted, refused = statuses.count(DONE), statuses.count(REFUSED)
    failed = len(statuses) - granted - refused
    return f"{over}/{len(used)}", max(used), granted, refused, failed


def play(service, number):
    """Claim so many times at once; return the PCPU in use then, and the statuses."""
    provider, consumers = str(uuid.uuid4()), [str(uuid.uuid4()) for _ in range(number)]
    path = f"/resource_providers/{provider}"
    service.ask("POST", "/resource_providers", {"uuid": provider, "name": provider})
    inventory = {
        "resource_provider_generation": 0,
        "inventories": {"PCPU": {"total": CAPACITY}},
    }
    service.ask("PUT", f"{path}/inventories", inventory)
    claim = {
        "allocations": {provider: {"resources": {"PCPU": CLAIM}}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": None,
    }
    # Each process has accepted one, and waits for what is asked.
    connections = [service.connect() for _ in consumers]
    with futures.ThreadPoolExecutor(number) as threads:
        answers = threads.map(
            lambda consumer, connection: service.request(
                "PUT", f"/allocations/{consumer}", claim, connection
            ),
            consumers,
            connections,
        )
        statuses = [status for status, _ in answers]
    used = service.ask("GET", f"{path}/usages")["usages"]["PCPU"]
    for status, consumer in zip(statuses, consumers, strict=True):
        if status == DONE:
            service.ask("DELETE", f"/allocations/{consumer}")
    service.ask("DELETE", path)
    return used, statuses


def main(arguments=None):
    """Measure; return 1 with the reason when it cannot be done."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmark.overgranting",
        description="Show how often Placement grants more than it has.",
    )
    parser.add_argument("--rounds", type=positive, default=25, help="of each row (25)")
    parser.add_argument(
        "--processes", type=positive, default=8, help="that claim at once (8)"
    )
    return status_of(measured, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
