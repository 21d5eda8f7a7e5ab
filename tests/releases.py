# SPDX-License-Identifier: Apache-2.0
"""Write what tests said on each release of Nova: the table of the documentation.

    python -m tests.releases 2025.1=.tox/nova-2025.1 2026.2=. ... > FILE

Takes the cycle of each directory with runs that stestr stored; several may be of one
cycle.  Of a directory the last whole run of each suite counts.  Which releases those
were is in the cycle's constraints.
"""

import collections
import contextlib
import csv
import pathlib
import re
import sys

from stestr.repository import util

from tests import count

HERE = pathlib.Path(__file__).parent
SUITES = ("unit", "functional")
COLUMNS = ("Cycle", "Nova", "Placement", *(f"{suite} tests" for suite in SUITES))
STATES = {"success": "passed", "xfail": "passed", "skip": "skipped"}


def constraints(cycle):
    """Return the file that pins what tests of a cycle run on."""
    of_cycle = HERE / f"constraints-{cycle}.txt"
    return of_cycle if of_cycle.exists() else HERE / "constraints.txt"


def pinned(cycle, name):
    """Return the release of a distribution that tests of a cycle run on."""
    text = constraints(cycle).read_text(encoding="utf-8")
    (version,) = re.findall(rf"^{name}==(.*)$", text, re.MULTILINE)
    return version


def outcomes(directories):
    """Return {test: what became of it}; of several directories the later one's word.

    Of each suite the last whole run in a directory counts, and stderr says which.
    """
    ended = {}
    # Reasons of skips are no part of the table.
    with contextlib.redirect_stdout(sys.stderr):
        for directory in directories:
            repository = util.get_repo_open(repo_url=str(directory))
            numbers = range(repository.count())
            runs = [count.read(repository.get_test_run(n)).ended for n in numbers]
            for suite in SUITES:
                ended |= _last_whole(directory, suite, runs)
    return {test: STATES.get(state, "failed") for test, state in ended.items()}


def _last_whole(directory, suite, runs):
    """Return what became of the tests of a suite in the last run of all of it.

    One whose tests are a part of an earlier run's is a part of the suite.
    """
    found = {}
    for number, ended in enumerate(runs):
        of_suite = {t: s for t, s in ended.items() if t.startswith(f"tests.{suite}.")}
        if of_suite and not any(of_suite.keys() < run.keys() for run in found.values()):
            found[number] = of_suite
    if not found:
        return {}
    last = max(found)
    sys.stderr.write(
        f"{directory}: {len(found[last])} {suite} tests of run {last} count; the last "
        f"run is {len(runs) - 1}\n"
    )
    return found[last]


def table(repositories):
    """Return the rows, for {cycle: directories with its runs}.

    A suite's tests are those that ran on any of the cycles.
    """
    found = {cycle: outcomes(dirs) for cycle, dirs in sorted(repositories.items())}
    everything = {test for ended in found.values() for test in ended}
    return [
        (
            cycle,
            pinned(cycle, "nova"),
            pinned(cycle, "openstack-placement"),
            *(_said(ended, everything, f"tests.{suite}.") for suite in SUITES),
        )
        for cycle, ended in found.items()
    ]


def _said(ended, everything, prefix):
    tests = {test for test in everything if test.startswith(prefix)}
    counts = collections.Counter(ended.get(test, "not run") for test in tests)
    states = ("passed", "failed", "skipped", "not run")
    said = [f"{counts[state]} {state}" for state in states if counts[state]]
    return ", ".join(said) or "none"


def main(arguments):
    """Print the table as comma-separated values."""
    repositories = collections.defaultdict(list)
    for argument in arguments:
        cycle, _, directory = argument.partition("=")
        repositories[cycle].append(directory)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(table(repositories))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
