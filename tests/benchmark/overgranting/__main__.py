# SPDX-License-Identifier: Apache-2.0
"""Try each setting, and print the table."""

import argparse
import importlib.metadata
import os
import platform
import sys
import tempfile
from pathlib import Path

from nova_perfvm.sandbox.processes.errors import SandboxError
from tests.benchmark.command import positive, status_of, tell

try:
    import placement

    from tests.benchmark.overgranting.database import Database
    from tests.benchmark.overgranting.processes import (
        CAPACITY,
        CLAIM,
        Placement,
        Tally,
        play,
    )
    from tests.benchmark.overgranting.table import HEAD, describe, line, rows
except ImportError as exc:
    sys.exit(
        f"{exc.name} cannot be imported: install openstack-placement and PyMySQL "
        "beside this package, pip install -e '.[sandbox,test]'"
    )

# The two that databases have by default, and the two that are seldom chosen.
USUAL = ("REPEATABLE READ", "READ COMMITTED")
LEVELS = (*USUAL, "READ UNCOMMITTED", "SERIALIZABLE")
RETRIES = (10, 1)
PACKAGES = ("openstack-placement", "oslo.db", "SQLAlchemy", "PyMySQL")


def measure(database, row, processes, rounds):
    """Return the tally of a row."""
    tally = Tally()
    database.configure(row)
    etc = database.configure_placement(row.retries)
    with Placement(processes, etc, database.log) as service:
        for number in range(rounds):
            play(service, tally)
            tell(f"{describe(row)}: {number + 1} of {rounds}")
    tell("")
    return tally


def measured(options):
    """Measure on servers that are there for that long."""
    with (
        tempfile.TemporaryDirectory(prefix="overgranting-") as directory,
        Database(directory) as database,
    ):
        run(options, database)


def run(options, database):
    """Print the table."""
    write = sys.stdout.write
    snapshots = [False] if database.has_snapshot_isolation else [None]
    if options.snapshot_isolation:
        if not database.has_snapshot_isolation:
            raise SandboxError(
                f"MariaDB {database.version} has no innodb_snapshot_isolation: leave "
                "--snapshot-isolation out, or install a newer one"
            )
        snapshots.append(True)
    versions = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    write(f"{', '.join(versions)}, Python {platform.python_version()}\n")
    write(f"MariaDB {database.version}, {len(os.sched_getaffinity(0))} CPUs\n")
    write(f"Placement is that of {Path(placement.__file__).parents[1]}\n")
    write(
        f"{options.processes} processes ask a provider of {CAPACITY} PCPU for {CLAIM} "
        f"each at once, {options.rounds} rounds\n\n{HEAD}\n"
    )
    failures = []
    for row in rows(options.isolation or USUAL, snapshots, options.retries or RETRIES):
        tally = measure(database, row, options.processes, options.rounds)
        write(f"{line(row, tally)}\n")
        sys.stdout.flush()
        if tally.failure:
            failures.append(f"{describe(row)}: {tally.failure}")
    for failure in failures:
        write(f"\n{failure}\n")


def parse(arguments):
    """Return the options."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmark.overgranting",
        description="Show how often Placement grants more than it has.",
    )
    parser.add_argument("--rounds", type=positive, default=25, help="of each row (25)")
    parser.add_argument(
        "--processes", type=positive, default=8, help="that claim at once (8)"
    )
    parser.add_argument(
        "--retries",
        type=int,
        action="append",
        help="allocation_conflict_retry_count, may be repeated (10, and 1)",
    )
    parser.add_argument(
        "--isolation",
        choices=LEVELS,
        action="append",
        metavar="LEVEL",
        help=f"{', '.join(LEVELS)}; may be repeated (the first two)",
    )
    parser.add_argument(
        "--snapshot-isolation",
        action="store_true",
        help="try innodb_snapshot_isolation = ON, too",
    )
    return parser.parse_args(arguments)


def main(arguments=None):
    """Measure; return 1 with the reason when it cannot be done."""
    return status_of(measured, parse(arguments))


if __name__ == "__main__":
    sys.exit(main())
