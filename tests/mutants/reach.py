# SPDX-License-Identifier: Apache-2.0
"""Record which unit tests run each line of the package, and for how long each runs.

``python -m tests.mutants.reach FILE ROOM...`` writes JSON: ``seconds`` by test,
``lines`` (tests by line by path) and ``modules`` (what the tests import of others, in
the order of import).
"""

import collections
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest

import coverage

OURS = ("nova_perfvm", "tests", "__main__")
WORKERS = 2


def tests_of(suite):
    """Yield the tests of a suite."""
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from tests_of(one)
        else:
            yield one


def record(worker, rooms, folder):
    """Run each ``WORKERS``-th unit test, and store lines, seconds and modules."""
    watched = coverage.Coverage(
        data_file=f"{folder}/coverage-{worker}", source=rooms, config_file=False
    )
    watched.start()
    known = set(sys.modules)
    suite = unittest.defaultTestLoader.discover("tests/unit", top_level_dir=".")
    imported = [name for name in sys.modules if name not in known]
    seconds = {}
    for number, test in enumerate(tests_of(suite)):
        if number % WORKERS == worker:
            watched.switch_context(test.id())
            began = time.monotonic()
            result = unittest.TestResult()
            test.run(result)
            if result.wasSuccessful() and not result.skipped:
                seconds[test.id()] = time.monotonic() - began
    watched.stop()
    watched.save()
    data = watched.get_data()
    lines = {
        os.path.relpath(path): data.contexts_by_lineno(path)
        for path in data.measured_files()
    }
    stored = {"seconds": seconds, "lines": lines, "modules": imported}
    pathlib.Path(folder, f"{worker}.json").write_text(json.dumps(stored))


def joined(parts):
    """Return the workers' records as one; tests that did not pass are left out."""
    seconds = {test: took for part in parts for test, took in part["seconds"].items()}
    lines = collections.defaultdict(lambda: collections.defaultdict(list))
    for part in parts:
        for path, tests in part["lines"].items():
            for line, names in tests.items():
                lines[path][line] += [name for name in names if name in seconds]
    modules = [
        name for name in parts[0]["modules"] if name.partition(".")[0] not in OURS
    ]
    return {"seconds": seconds, "lines": lines, "modules": modules}


def main(target, *rooms):
    """Record with two processes, and write what both saw."""
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for worker in range(WORKERS):
            if not (child := os.fork()):
                quiet = os.open(os.devnull, os.O_WRONLY)
                os.dup2(quiet, 1)
                record(worker, list(rooms), folder)
                os._exit(0)
            children.append(child)
        for child in children:
            if os.waitpid(child, 0)[1]:
                sys.exit("the unit tests could not be run: try `make unit`")
        parts = [
            json.loads(pathlib.Path(folder, f"{worker}.json").read_text())
            for worker in range(WORKERS)
        ]
    pathlib.Path(target).write_text(json.dumps(joined(parts)))


if __name__ == "__main__":
    main(*sys.argv[1:])
