# SPDX-License-Identifier: Apache-2.0
"""Plant drawn faults, and tell which ones no unit test fails for.

    python -m tests.mutants FAULTS.json REACH.json

Fails if fewer than 90 % are seen.  Faults that change nothing that anybody could see
are listed in equivalent.yaml with the reason, and do not count.
"""

import collections
import contextlib
import dataclasses
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import resource
import signal
import sys
import unittest

import yaml

EQUIVALENT = pathlib.Path(__file__).with_name("equivalent.yaml")
GOAL = 0.9
WORKERS = 2
# Of the tests that reach a fault, the shortest that fit into these seconds run.
BUDGET = 40
# A fault may make a loop endless.
LONGEST = 240
# Exit statuses of the process in which a fault is planted.
SURVIVED, KILLED, BROKEN = range(3)


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault as tests/mutants/draw.py draws it."""

    path: str
    line: int
    operator: str
    before: str
    after: str
    source: str

    @property
    def module(self):
        parts = pathlib.Path(self.path).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def room(self):
        return pathlib.Path(self.path).parts[1]

    def __str__(self):
        return f"{self.path}:{self.line}: {self.before}  ->  {self.after}"


class Planted(importlib.abc.MetaPathFinder):
    """Finds one module, whose source is that of a fault."""

    def __init__(self, fault):
        self.fault = fault

    def find_spec(self, fullname, path=None, target=None):
        """Return the spec of the module with the fault, None for other modules."""
        if fullname != self.fault.module:
            return None
        return importlib.util.spec_from_file_location(
            fullname, self.fault.path, loader=FaultyLoader(self.fault)
        )


class FaultyLoader(importlib.machinery.SourceFileLoader):
    """Loads the source of a fault in place of its file."""

    def __init__(self, fault):
        super().__init__(fault.module, fault.path)
        self.fault = fault

    def get_code(self, fullname):
        """Return the code of the module with the fault."""
        return compile(self.fault.source, self.fault.path, "exec")


def say(text):
    """Print a line at once: progress is read while the faults are planted."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def nearest(fault, reach):
    """Return the tests that run a fault's line, those of its own module first.

    What runs at import, such as a default or a constant, is reached by each test that
    runs a line of the module.
    """
    lines = reach["lines"].get(fault.path, {})
    tests = set(lines.get(str(fault.line), ()))
    if not tests:
        tests = {test for names in lines.values() for test in names}
    stem = pathlib.Path(fault.path).stem.strip("_")
    own = f"test_{stem}."

    def order(test):
        return own not in test, f".{fault.room}." not in test, reach["seconds"][test]

    chosen, seconds = [], 0.0
    for test in sorted(tests & reach["seconds"].keys(), key=order):
        seconds += reach["seconds"][test]
        if chosen and seconds > BUDGET:
            break
        chosen.append(test)
    return chosen


def planted(fault, tests):
    """Plant a fault in this process and run tests.

    :return: SURVIVED, KILLED or BROKEN (the module cannot be imported), and the test
        that failed
    """
    signal.alarm(LONGEST)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    sys.meta_path.insert(0, Planted(fault))
    try:
        importlib.import_module(fault.module)
    except Exception:  # noqa: BLE001 - whatever a fault raises
        return BROKEN, ""
    result = unittest.TestResult()
    for name in tests:
        try:
            unittest.defaultTestLoader.loadTestsFromName(name).run(result)
        except Exception:  # noqa: BLE001 - whatever a fault raises
            return KILLED, name
        if not result.wasSuccessful():
            return KILLED, name
    return SURVIVED, ""


def apart(fault, tests):
    """Plant a fault in a forked process; return its ID and a pipe of the outcome."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.close(reading)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        status, test = planted(fault, tests)
        os.write(writing, json.dumps([status, test]).encode())
        os._exit(0)
    os.close(writing)
    return child, reading


def ended(reading):
    """Return the outcome in a pipe: the status, and the test that failed.

    An endless loop ends by SIGALRM, without an outcome: tests have seen the fault.
    """
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    return json.loads(text) if text else [KILLED, ""]


def outcomes(faults, reach):
    """Yield (fault, status); two processes run at a time.

    A test that fails has to pass without the fault, in a process of the same kind;
    else it is left out, and the fault is planted again.
    """
    waiting, running = list(reversed(faults)), {}
    while waiting or running:
        while waiting and len(running) < WORKERS:
            fault = waiting.pop()
            child, pipe = apart(fault, nearest(fault, reach))
            running[child] = fault, pipe
        child, _ = os.wait()
        fault, pipe = running.pop(child)
        status, test = ended(pipe)
        if test:
            sound = dataclasses.replace(
                fault, source=pathlib.Path(fault.path).read_text()
            )
            child, pipe = apart(sound, [test])
            os.waitpid(child, 0)
            if ended(pipe)[0] != SURVIVED:
                say(f"left out, as it fails without a fault, too: {test}")
                del reach["seconds"][test]
                waiting.append(fault)
                continue
        yield fault, status


def equivalents():
    """Return (path, before, after) of the faults that are known to change nothing."""
    listed = yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8")) or []
    return {(each["path"], each["before"], each["after"]) for each in listed}


def main(faults, reach):
    """Plant all faults, print survivors and a table; return the exit status."""
    faults = [Fault(**each) for each in json.loads(pathlib.Path(faults).read_text())]
    reach = json.loads(pathlib.Path(reach).read_text())
    # A process with a fault begins with what all need; only the package is read anew.
    for name in reach["modules"]:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    known = equivalents()
    counts = collections.defaultdict(collections.Counter)
    survivors = []
    for number, (fault, status) in enumerate(outcomes(faults, reach), 1):
        if status == SURVIVED and (fault.path, fault.before, fault.after) in known:
            outcome = "equivalent"
        else:
            outcome = ("survived", "killed", "broken")[min(status, BROKEN)]
        counts[fault.room][outcome] += 1
        if outcome == "survived":
            survivors.append(fault)
        say(f"{number}/{len(faults)} {outcome}: {fault}")
    say(f"\n{'room':12}{'killed':>8}{'survived':>10}{'equivalent':>12}{'broken':>8}")
    for room, found in sorted(counts.items()):
        row = (found[name] for name in ("killed", "survived", "equivalent", "broken"))
        say("{:12}{:8}{:10}{:12}{:8}".format(room, *row))
    for fault in survivors:
        say(f"survived: {fault}")
    killed = sum(found["killed"] for found in counts.values())
    share = killed / ((killed + len(survivors)) or 1)
    say(f"{killed} of {killed + len(survivors)} faults seen: {share:.0%}")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
