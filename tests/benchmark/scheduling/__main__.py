# SPDX-License-Identifier: Apache-2.0
"""Measure, and write the figures and the pages' tables of them."""

import argparse
import importlib.metadata
import json
import os
import platform
import shlex
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmark.command import positive, status_of, tell
from tests.benchmark.scheduling import cost, groups, limits, report
from tests.benchmark.scheduling.databases import Databases
from tests.benchmark.scheduling.rig import Rig

COMMAND = ("python", "-m", "tests.benchmark.scheduling")
PACKAGES = ("nova", "openstack-placement", "SQLAlchemy", "PyMySQL")
OUTPUT = Path(__file__).parents[3] / "doc" / "source" / "admin"
# In this order, each by the name of its figures.
STUDIES = {
    "elastic": limits.elastic,
    "packing": limits.packing,
    "filling": limits.filling,
    "starving": limits.starving,
    "throughput": cost.throughput,
    "cost": cost.cost,
    "cells": cost.cells,
    "groups": groups.groups,
}


def measured(options):
    """Measure on servers that are there for that long."""
    with (
        tempfile.TemporaryDirectory(prefix="scheduling-") as where,
        Databases(where) as database,
    ):
        run(options, database)


def run(options, database):
    """Measure what is asked for, and write it into the directory of the pages."""
    path = options.output / report.FIGURES
    figures = {}
    if options.only and path.exists():
        figures = json.loads(path.read_text(encoding="utf-8"))
    for name in options.only or STUDIES:
        # Processes of one study do not slow those of the next.
        with Rig(database) as rig:
            figures[name] = timed(STUDIES[name], rig, options, database)
        report.write(figures, options.output)
        tell("")
        sys.stdout.write(f"{name}\n\n{report.shown(name, figures[name])}\n")


def timed(study, rig, options, database):
    """Return the figures of a study, and what they rest on."""
    started, load = time.monotonic(), os.getloadavg()[0]
    found = study(rig, options)
    made = {
        "command": shlex.join((*COMMAND, *options.given)),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "mariadb": database.version,
        "cpus": len(os.sched_getaffinity(0)),
        # Of the minute before, and of the last one.
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "minutes": round((time.monotonic() - started) / 60, 1),
    }
    return {"made": made, "figures": found}


def parse(arguments):
    """Return the options."""
    parser = argparse.ArgumentParser(
        prog=" ".join(COMMAND),
        description="Show what scheduling costs, and what a limit of candidates loses.",
    )
    parser.add_argument(
        "--hosts",
        type=positive,
        action="append",
        help="whose requests' cost is measured, may be repeated (100, 1000)",
    )
    # The median of three varies hardly less than the mean of two.
    parser.add_argument("--rounds", type=positive, default=2, help="of each row (2)")
    parser.add_argument(
        "--study-hosts", type=positive, default=1000, help="of the other studies (1000)"
    )
    parser.add_argument(
        "--only",
        choices=tuple(STUDIES),
        action="append",
        help="measure this, and keep the other figures; may be repeated",
    )
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, help="directory of the pages"
    )
    options = parser.parse_args(arguments)
    options.given = sys.argv[1:] if arguments is None else arguments
    options.hosts = options.hosts or [100, 1000]
    # Before half an hour's work.
    options.output.mkdir(parents=True, exist_ok=True)
    return options


def main(arguments=None):
    """Measure; return 1 with the reason when it cannot be done."""
    return status_of(measured, parse(arguments))


if __name__ == "__main__":
    sys.exit(main())
