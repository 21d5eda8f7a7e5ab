# SPDX-License-Identifier: Apache-2.0
"""Figures as JSON, and the pages' tables of them."""

import json

from tests.benchmark.scheduling.arms import RECOMMENDED, Arm, arms
from tests.benchmark.scheduling.pools import POOLS

FIGURES = "scheduling-cost.json"
# Of the studies whose records are a line each: a column's head, and its cells.
TABLES = {
    "elastic": {
        "[placement]": "{strategy}",
        "limit": "{limit}",
        "candidates": "{candidates}",
        "hosts seen": "{hosts_seen} of {hosts}",
        "scheduler ms": "{scheduler_ms:.0f}",
        "Placement ms": "{placement_ms:.0f}",
    },
    "packing": {
        "limit": "{limit}",
        "candidates": "{candidates}",
        "VMs": "{vms}",
        "hosts used": "{hosts_used}",
        "refused": "{refused}",
    },
    "filling": {
        "limit": "{limit}",
        "hosts": "{hosts}",
        "room for": "{room}",
        "VMs placed": "{placed}",
    },
    "cells": {
        "VMs there": "{pool}",
        "taken": "{taken:.0%}",
        "arm": "{arm}",
        "hosts offered": "{hosts_seen}",
        "refused": "{refused}",
        "scheduler ms": "{scheduler_ms:.0f}",
        "Placement ms": "{placement_ms:.0f}",
        "wall ms": "{wall_ms:.0f}",
        "ratio": "{ratio:.2f}",
    },
    "groups": {
        "scheme": "{scheme}",
        "children": "{children}",
        "groups": "{groups}",
        "hosts": "{hosts}",
        "taken": "{taken:.0%}",
        "candidates": "{candidates}",
        "CPU ms": "{cpu_ms:.0f}",
        "optimized": "{optimized_ms:.0f}",
    },
    "throughput": {
        "schedulers": "{schedulers}",
        "arm": "{arm}",
        "hosts": "{hosts}",
        "placed": "{placed} of {requests}",
        "requests/s": "{per_second:.2f}",
        "scheduler CPU ms each": "{cpu_ms_each:.0f}",
    },
}


def write(figures, directory):
    """Write all files into a directory."""
    text = json.dumps(figures, indent=1) + "\n"
    (directory / FIGURES).write_text(text, encoding="utf-8")
    for name in figures:
        path = directory / f"scheduling-{name}.txt"
        path.write_text(shown(name, figures[name]), encoding="utf-8")


def shown(name, study):
    """Return what a page shows of a study."""
    found = study["figures"]
    if name in TABLES:
        columns = TABLES[name]
        lines = [[cell.format(**r) for cell in columns.values()] for r in found]
        text = table(columns, lines)
    else:
        text = {"cost": cost, "starving": starving}[name](found)
    return made(study["made"]) + text


def made(how):
    """Return how figures came about, as a paragraph with the command."""
    packages = ", ".join(f"{name} {of}" for name, of in how["packages"].items())
    before, after = how["load"]
    return (
        f"::\n\n    $ {how['command']}\n\n"
        f"{packages}, Python {how['python']}, MariaDB {how['mariadb']};"
        f" {how['cpus']} CPUs, load average {before} to {after},"
        f" {how['minutes']} minutes.\n\n"
    )


def table(head, lines):
    """Return a table of reStructuredText."""
    text = [".. csv-table::", f"   :header: {_cells(head)}", ""]
    return "\n".join([*text, *(f"   {_cells(line)}" for line in lines), "", ""])


def _cells(values):
    return ", ".join(json.dumps(str(value)) for value in values)


def cost(found):
    """Return what requests cost: a table for each number of hosts."""
    parts = []
    for hosts in sorted({record["hosts"] for record in found}):
        parts += [f"**{hosts} hosts**\n\n", _ratios(found, hosts)]
    return "".join(parts)


def _ratios(found, hosts):
    head = ["hosts", "request", "taken", "stock, ms", "hosts seen", "replaced"]
    head += ["filter only", "replaced", "scheme", "replaced", str(RECOMMENDED)]
    by_key = {}
    for record in found:
        if record["hosts"] == hosts:
            key = record["pool"], record["request"], record["taken"]
            by_key.setdefault(key, {})[record["arm"]] = record
    lines = []
    for (pool, request, taken), by_arm in by_key.items():
        stock, *others = [by_arm[arm.name] for arm in arms(POOLS[pool].schemes)]
        spent = round(stock["scheduler_ms"] + stock["placement_ms"])
        seen = "{} / {}".format(stock["hosts_seen"], others[-1]["hosts_seen"])
        cells = [f"{other['ratio']:.2f}" for other in others]
        lines.append((pool, request, f"{taken:.0%}", spent, seen, *cells))
    return table(head, lines)


def starving(found):
    """Return the table of the requests refused although a host would take them."""
    lines = {}
    for each in found:
        scheme = Arm(each["scheme"]).name
        key = (each["pool"], scheme, each["request"], f"{each['taken']:.0%}")
        share = f"{each['refused'] / each['requests']:.1%}"
        lines.setdefault(key, {})[each["limit"]] = share if each["room"] else "no room"
    limits = sorted({each["limit"] for each in found}, reverse=True)
    head = ("hosts", "scheme", "request", "taken", *map(str, limits))
    cells = [(*key, *(each[limit] for limit in limits)) for key, each in lines.items()]
    return table(head, cells)
