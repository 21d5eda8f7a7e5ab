# SPDX-License-Identifier: Apache-2.0
"""Divide ``make test-long`` into shards of at most an hour, and tell what has run.

    python -m tests.shards 3/8     run the third of eight shards
    python -m tests.shards rest    run the parts that no record shows as passed
    python -m tests.shards list 8  list the parts of each shard
    python -m tests.shards status  list the parts that no record shows as passed

A shard writes a record, ``.test-long/COMMIT-3-of-8.json``: commit, product, shard,
seed, counts, and each part with its outcome and its minutes.  The product is git's hash
of nova_perfvm/ and devstack/: records of commits that differ in tests or pages add up.
The rest runs in shards of half an hour: a run that is broken off loses little.
PERFVM_RANDOM_SEED is the seed of everything that is drawn; without it one is drawn.
"""

import collections
import concurrent.futures
import dataclasses
import datetime as dt
import functools
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import time

import yaml
from stestr.repository import util

from tests import count

ROOT = pathlib.Path(__file__).parents[1]
RECORDS = ROOT / ".test-long"
STESTR = pathlib.Path(sys.executable).with_name("stestr")
# As the Makefile exports it: stestr imports Nova's fixtures to list tests.
os.environ.setdefault("OS_NOVA_DISABLE_EVENTLET_PATCHING", "1")
PRODUCT = ("nova_perfvm", "devstack")
# Suites wait for servers for much of their time.
AT_ONCE = 2
REST_MINUTES = 30
# Most of a target's output is that of tests that passed.
_TAIL_LINES = 60
# Nothing is left to another night.
WHOLE = {"NIGHTLY": ""}
# Sizes of tests: longer than in `make test`, and such that a night on two cores has
# room for all.
SIZES = {
    "PERFVM_AGREEMENT_STATES": "30",
    "PERFVM_FILLS": "8",
    "PERFVM_FUZZ_FILES": "400",
    "PERFVM_GROUP_PLANS": "20",
    "PERFVM_GROUP_VERDICTS": "600",
    "PERFVM_NUMA_REQUESTS": "600",
    "PERFVM_PCI_VERDICTS": "600",
    "PERFVM_RANDOM_STEPS": "200",
    "PERFVM_REFUSALS": "6",
    "PERFVM_STORM_REQUESTS": "30",
    "PERFVM_STORM_ROUNDS": "2",
}


@dataclasses.dataclass(frozen=True, order=True)
class Part:
    """A target of the Makefile, or one class of the tests that a target runs.

    :ivar tests: module and class, empty for a whole target
    :ivar minutes: what it is expected to take
    """

    target: str
    tests: str
    minutes: float

    @property
    def name(self):
        """The part in one word, as records have it."""
        return f"{self.target}:{self.tests}" if self.tests else self.target


@functools.cache
def table():
    """Return the targets, their suites and minutes."""
    return yaml.safe_load(pathlib.Path(__file__).with_suffix(".yaml").read_text())


@functools.cache
def tests_of(suite):
    """Return the ids of the tests of a directory below tests/, in order."""
    command = [STESTR, "--test-path", f"./tests/{suite}", "list"]
    if suite == "tempest":
        command = [sys.executable, "-m", "tests.tempest", "--list"]
    listed = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ).stdout
    starts = ("tests.", "tempest.", "nova_perfvm.")
    return [line for line in listed.splitlines() if line.startswith(starts)]


def class_of(test_id):
    """Return module and class of a test: ``test_storm.CellsStormTest``."""
    return ".".join(test_id.partition("(")[0].split(".")[-3:-1])


def parts():
    """Return all parts."""
    known = table()
    found = [Part(name, "", each["minutes"]) for name, each in known["targets"].items()]
    for target, each in known["classes"].items():
        listed = each.get("listed", {})
        found += [
            Part(target, tests, listed.get(tests, each["minutes"]))
            for tests in sorted({class_of(test) for test in tests_of(each["suite"])})
        ]
    return found


def divide(whole, number):
    """Deal parts out to shards, the longest first, each to the emptiest shard."""
    shards = [[] for _ in range(number)]
    for part in sorted(whole, key=lambda part: (-part.minutes, part.name)):
        min(shards, key=lambda shard: sum(each.minutes for each in shard)).append(part)
    return shards


def commands(shard):
    """Return the arguments of make for each target of a shard, and its parts."""
    by_target = collections.defaultdict(list)
    for part in shard:
        by_target[part.target].append(part)
    found = {}
    for target, mine in by_target.items():
        arguments = [target]
        if target in table()["classes"]:
            patterns = " ".join(rf"'\.{part.tests}\.'" for part in mine)
            arguments.append(f"{table()['classes'][target]['patterns']}={patterns}")
        found[target] = (arguments, mine)
    return found


def expected(shard):
    """Return how many tests a shard has."""
    number = 0
    for part in shard:
        if part.tests:
            tests = tests_of(table()["classes"][part.target]["suite"])
            number += sum(class_of(test) == part.tests for test in tests)
        else:
            suites = table()["targets"][part.target].get("suites", [])
            number += sum(len(tests_of(suite)) for suite in suites)
    return number


def git(*arguments):
    """Return what git prints."""
    return subprocess.run(
        ["git", *arguments], check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ).stdout.strip()


def product():
    """Return git's hashes of the product, and whether the work tree differs."""
    hashes = "-".join(git("rev-parse", "--short", f"HEAD:{each}") for each in PRODUCT)
    return hashes + "-changed" * bool(git("status", "--porcelain", "--", *PRODUCT))


def run(name):
    """Run a shard, named ``3/8``; return the exit status."""
    which, number = map(int, name.split("/"))
    return run_parts(divide(parts(), number)[which - 1], name)


def run_rest():
    """Run the parts that have not passed on this product; return the exit status."""
    left = not_passed(parts(), stored_records(), product())
    number = math.ceil(sum(part.minutes for part in left) / REST_MINUTES)
    now = dt.datetime.now(dt.UTC).strftime("%d%H%M")
    return max(
        (
            run_parts(shard, f"{which}/{number}/{now}")
            for which, shard in enumerate(divide(left, number), start=1)
        ),
        default=0,
    )


def run_parts(shard, name):
    """Run parts and write their record; return the exit status.

    :param shard: the parts
    :param name: ``3/8``, for the record
    """
    seed = os.environ.get("PERFVM_RANDOM_SEED") or str(random.randrange(10**6))
    environment = {**SIZES, **WHOLE, **os.environ, "PERFVM_RANDOM_SEED": seed}
    environment.setdefault("PERFVM_FUZZ_SEED", seed)
    record = {
        "commit": git("rev-parse", "HEAD"),
        "product": product(),
        "shard": name,
        "began": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "seed": seed,
    }
    stored = util.get_repo_open(repo_url=str(ROOT))
    first = stored.latest_id() + 1 if stored.count() else 0
    ended = {}

    def make(target):
        arguments, mine = jobs[target]
        began = time.monotonic()
        done = subprocess.run(
            ["make", *arguments],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=ROOT,
            env=environment,
        )
        minutes = (time.monotonic() - began) / 60
        if done.returncode:
            said = "\n".join(done.stdout.splitlines()[-_TAIL_LINES:])
            sys.stdout.write(f"{said}\n")
        state = "failed" if done.returncode else "passed"
        sys.stdout.write(f"{target}: {state}, {minutes:.1f} minutes\n")
        sys.stdout.flush()
        ended.update(dict.fromkeys(mine, state))
        return target, round(minutes, 1)

    jobs = commands(shard)
    longest = sorted(jobs, key=lambda target: -sum(p.minutes for p in jobs[target][1]))
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        record["minutes"] = dict(pool.map(make, longest))
    counts, seconds, passed = counted(first)
    wanted = expected(shard)
    if (missing := wanted - sum(counts.values())) > 0:
        sys.stdout.write(f"{missing} of {wanted} tests did not run\n")
    parts_ended = settled(ended, passed, whole=missing <= 0)
    record |= {"counts": counts, "expected": wanted, "parts": parts_ended}
    record["class_minutes"] = {
        tests: round(taken / 60, 1) for tests, taken in sorted(seconds.items())
    }
    RECORDS.mkdir(exist_ok=True)
    label = name.replace("/", "-of-", 1).replace("/", "-")
    path = RECORDS / f"{record['commit'][:8]}-{label}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    sys.stdout.write(f"{path}: {counts['passed']} passed, {counts['failed']} failed\n")
    return int("failed" in ended.values() or counts["failed"] > 0)


def settled(states, passed, *, whole):
    """Return which parts passed, by their names.

    A class needs no other run because another class of its target failed.

    :param states: {part: how its target ended}
    :param passed: how many tests did not fail, by suite and class
    :param whole: whether all tests ran
    """
    found = {}
    for part, state in states.items():
        if part.tests:
            suite = table()["classes"][part.target]["suite"]
            good = passed[suite, part.tests] == expected([part])
        else:
            good = whole and state == "passed"
        found[part.name] = "passed" if good else "failed"
    return found


def counted(first):
    """Return what stestr's runs from one on have in sum.

    :returns: counts of outcomes; seconds by class; by suite and class, how many tests
        did not fail
    """
    stored = util.get_repo_open(repo_url=str(ROOT))
    counts, seconds = collections.Counter(passed=0, failed=0), collections.Counter()
    passed = collections.Counter()
    for number in range(first, stored.latest_id() + 1):
        totals = count.read(stored.get_test_run(number))
        sys.stdout.writelines(f"{line}\n" for line in totals.failures())
        counts.update(totals.counts)
        for test, taken in totals.seconds.items():
            seconds[class_of(test)] += taken
        passed.update(
            (test.split(".")[1], class_of(test))
            for test, state in totals.ended.items()
            if state not in count.BAD
        )
    return dict(counts), seconds, passed


def not_passed(whole, records, current):
    """Return the parts that no record of the current product shows as passed."""
    passed = {
        name
        for record in records
        if record["product"] == current
        for name, state in record["parts"].items()
        if state == "passed"
    }
    return [part for part in whole if part.name not in passed]


def stored_records():
    """Return the records of earlier runs."""
    return [json.loads(path.read_text()) for path in sorted(RECORDS.glob("*.json"))]


def status():
    """Print what has not passed on the product as it is; return the exit status."""
    whole, current = parts(), product()
    left = not_passed(whole, stored_records(), current)
    for part in left:
        sys.stdout.write(f"not passed: {part.name}, {part.minutes:g} minutes\n")
    sys.stdout.write(f"{len(whole) - len(left)} of {len(whole)} parts: {current}\n")
    return int(bool(left))


def show(number):
    """Print the parts of each shard; return 0."""
    for which, shard in enumerate(divide(parts(), number), start=1):
        minutes = sum(part.minutes for part in shard)
        names = ", ".join(part.name for part in shard)
        sys.stdout.write(f"{which}/{number}: {minutes:g} minutes: {names}\n")
    return 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["list", shards]:
            sys.exit(show(int(shards)))
        case ["rest"]:
            sys.exit(run_rest())
        case ["status"]:
            sys.exit(status())
        case [one]:
            sys.exit(run(one))
        case _:
            sys.exit(__doc__)
