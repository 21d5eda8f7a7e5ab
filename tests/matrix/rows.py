# SPDX-License-Identifier: Apache-2.0
"""Do a row on both clouds, and say what is wrong."""

import functools
import re
from typing import NamedTuple

from tests.matrix.clouds import Cloud
from tests.matrix.judge import Judge
from tests.matrix.operations import Operations


class Known(NamedTuple):
    """A fault that is not mended yet: of these rows, in such words."""

    why: str
    rows: object
    words: str


# The test of a row fails once its fault is mended: remove the fault here then.
KNOWN = ()


class Outcome(NamedTuple):
    """A row on one cloud.

    :ivar steps: what was done
    :ivar broken: what the policy forbids of it
    :ivar near: whether the VM is on its device's NUMA node
    """

    steps: tuple
    broken: tuple[str, ...]
    near: bool | None


def do(row, *, ours, found):
    """Do a row on a cloud; add to ``found`` what is wrong."""
    with Cloud(row, ours=ours) as cloud:
        operations, judge = Operations(cloud), Judge(cloud)
        for step in operations():
            if ours:
                found += [f"{step.name}: {text}" for text in _explained(step)]
                found += [
                    f"after {step.name}: {text}"
                    for text in judge.complaints(audited=step.done)
                ]
        last = operations.steps[-1]
        near = judge.near(last.servers[0].id) if last.servers else None
        return Outcome(tuple(operations.steps), tuple(judge.against_policy()), near)


def _explained(step):
    """Yield where explain was wrong."""
    if step.said is None:
        return
    if step.done:
        hosts = {server.host for server in step.servers}
        # The second of several requests is another question.
        if not (hosts & step.expected if len(hosts) > 1 else hosts <= step.expected):
            yield f"explain said {step.said}, Nova chose {hosts}"
    elif step.expected and len(step.servers) < 2:
        yield f"explain said {step.said}, and Nova says {step.why}"


def complaints(row):
    """Return what is wrong with a row, in words, and what was seen of it."""
    found = []
    stock = do(row, ours=False, found=found)
    ours = do(row, ours=True, found=found)
    told = [f"stock {', '.join(map(str, stock.steps))}; near: {stock.near}"]
    told += [f"ours {', '.join(map(str, ours.steps))}; near: {ours.near}"]
    told += [f"stock, by the policy: {text}" for text in stock.broken]
    if not stock.steps[-1].done:
        # Such a row tests none of its other factors.
        found.append(f"a constraint is missing: stock refuses {stock.steps[-1]}")
    for own, other in zip(ours.steps, stock.steps, strict=False):
        if other.done and not own.done and not stock.broken:
            found.append(f"stock does it, and not with us: {own}")
        if (
            "ERROR" in own.statuses
            and not own.unplaced
            and "ERROR" not in other.statuses
        ):
            found.append(f"ERROR, and not with stock: {own}")
    if stock.near and not ours.near and ours.steps[-1].done:
        found.append("stock has the VM on the NUMA node of its device, we do not")
    return found, told


def known(row, text):
    """Return the Known fault that a complaint is of, if any."""
    for fault in KNOWN:
        if fault.rows(row) and re.search(fault.words, text):
            return fault
    return None


def check(row):
    """Do a row.

    :raises AssertionError: with the row, how it is done again, and what is wrong
    """
    found, told = complaints(row)
    wrong = [text for text in found if not known(row, text)]
    wrong += [
        f"{fault.why}: it is mended, and has to go from KNOWN"
        for fault in KNOWN
        if fault.rows(row) and not any(re.search(fault.words, t) for t in found)
    ]
    if wrong:
        again = f'again: make matrix PERFVM_MATRIX_ROW="{row}"'
        raise AssertionError("\n".join(["", f"row: {row}", again, *told, *wrong]))


def each(chosen):
    """Return a decorator that gives a class of tests one for each row."""

    def decorate(tests):
        for number, row in enumerate(chosen):
            name = f"{number:03}_{row.scheme}_{row.size}_{row.operation}"
            method = functools.partialmethod(lambda _test, row: check(row), row)
            setattr(tests, f"test_{name.replace(' ', '_')}", method)
        return tests

    return decorate
