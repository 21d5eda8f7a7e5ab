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

try:
    from tests.benchmark.scheduling import cost, limits, paired, report
    from tests.benchmark.scheduling.arms import REPLACEMENT, Arm
    from tests.benchmark.scheduling.databases import Databases
    from tests.benchmark.scheduling.pools import POOLS
    from tests.benchmark.scheduling.rig import Rig
except ImportError as exc:
    sys.exit(
        f"{exc.name} cannot be imported: install Nova, openstack-placement, PyMySQL "
        "and altair beside this package, pip install -e '.[nova,sandbox,measure,test]'"
    )

COMMAND = ("python", "-m", "tests.benchmark.scheduling")
PACKAGES = ("nova", "openstack-placement", "SQLAlchemy", "PyMySQL")
OUTPUT = Path(__file__).parents[3] / "doc" / "source" / "admin"
LARGE = 10000
TAKEN = (0.0, 0.5, 0.95, 0.99)


def _cost(rig, options, tell):
    """Return the records of the one pool that is left to measure."""
    found = []
    for hosts in options.hosts:
        found += cost.measure(
            rig, POOLS[options.pool], hosts, options.rounds, options.taken, tell
        )
    return found


def _throughput(rig, options, tell):
    return cost.throughput(rig, options.study_hosts, options.rounds, tell)


def _paired(rig, options, tell):
    return paired.measure(rig, options.study_hosts // 4, options.rounds * 6, tell)


def _starving(rig, options, tell):
    return limits.starving(
        rig, options.study_hosts, options.draws, tell, sorted(set(options.taken) - {0})
    )


def _packing(rig, options, tell):
    return limits.packing(rig, options.study_hosts, tell)


def _filling(rig, options, tell):
    return limits.filling(rig, options.study_hosts, tell)


def _elastic(rig, options, tell):
    return limits.elastic(rig, options.study_hosts, options.rounds, tell)


def _floor(rig, options, tell):
    rig.fill(POOLS["dedicated"], options.study_hosts, 0.5)
    tell("HostState, part by part")
    return rig.scheduler(Arm("slots", REPLACEMENT)).ask("floor", options.rounds)


# In this order, each by the name of its figures.
STUDIES = {
    "floor": _floor,
    "paired": _paired,
    "elastic": _elastic,
    "packing": _packing,
    "filling": _filling,
    "starving": _starving,
    "throughput": _throughput,
    "cost": _cost,
}


def circumstances(options, database):
    """Return what the figures rest on; loads are those of a minute."""
    return {
        "command": shlex.join((*COMMAND, *options.given)),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "mariadb": database.version,
        "cpus": len(os.sched_getaffinity(0)),
        "load": [round(os.getloadavg()[0], 1)],
        "rounds": options.rounds,
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
    for name, study in STUDIES.items():
        if options.only and name not in options.only:
            continue
        # Processes of one study do not slow those of the next.
        with Rig(database) as rig:
            # What is known of a pool is written before the next is begun.
            for pool in options.pools or POOLS if name == "cost" else [None]:
                options.pool = pool
                done = timed(study, rig, options, database)
                if pool and name in figures:
                    done = merged(figures[name], done)
                figures[name] = done
                report.write(figures, options.output)
    tell("")
    sys.stdout.write(report.text(figures))


def timed(study, rig, options, database):
    """Return the figures of a study, and what they rest on."""
    started = time.monotonic()
    made = circumstances(options, database)
    found = study(rig, options, tell)
    made["load"].append(round(os.getloadavg()[0], 1))
    made["minutes"] = round((time.monotonic() - started) / 60, 1)
    return {"made": made, "figures": found}


def merged(before, now):
    """Return a study of some pools with what others, or earlier runs, have found."""
    new = {(record["pool"], record["hosts"]) for record in now["figures"]}
    kept = [r for r in before["figures"] if (r["pool"], r["hosts"]) not in new]
    made = dict(now["made"])
    if kept:
        old = before["made"]
        commands = (*old["command"].split("\n"), made["command"])
        made["command"] = "\n".join(dict.fromkeys(commands))
        loads = (*old["load"], *made["load"])
        made["load"] = [min(loads), max(loads)]
        made["minutes"] = round(old["minutes"] + made["minutes"], 1)
    return {"made": made, "figures": kept + now["figures"]}


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
        help="of a pool, may be repeated (100, 1000, and with BENCH_FULL=1 10000)",
    )
    parser.add_argument(
        "--taken",
        type=share,
        nargs="+",
        default=TAKEN,
        help="shares of the hosts' places (0 0.5 0.95 0.99)",
    )
    parser.add_argument(
        "--pool",
        dest="pools",
        choices=tuple(POOLS),
        action="append",
        help="what requests cost in this alone; may be repeated (all)",
    )
    parser.add_argument(
        "--rounds",
        type=positive,
        # The median of three varies hardly less than the mean of two.
        default=2,
        help="of each row (2)",
    )
    parser.add_argument(
        "--study-hosts", type=positive, default=1000, help="of the other studies (1000)"
    )
    parser.add_argument(
        "--draws", type=positive, default=100, help="of candidates at random (100)"
    )
    parser.add_argument(
        "--only",
        choices=tuple(STUDIES),
        action="append",
        help="measure this, and keep the other figures; may be repeated",
    )
    parser.add_argument(
        "--output", type=directory, default=OUTPUT, help="directory of the pages"
    )
    options = parser.parse_args(arguments)
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Where the files are written changes no figure.
    where = given.index("--output") if "--output" in given else len(given)
    options.given = given[:where] + given[where + 2 :]
    if options.hosts is None:
        options.hosts = [100, 1000]
        if os.environ.get("BENCH_FULL") == "1":
            options.hosts.append(LARGE)
    return options


def share(text):
    """Return a number from 0 to 1."""
    number = float(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return number


def directory(text):
    """Return a path where files can be written, before half an hour's work."""
    path = Path(text)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise argparse.ArgumentTypeError(f"{text}: {exc.strerror}") from None
    return path


def main(arguments=None):
    """Measure; return 1 with the reason when it cannot be done."""
    return status_of(measured, parse(arguments))


if __name__ == "__main__":
    sys.exit(main())
