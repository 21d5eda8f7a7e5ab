# SPDX-License-Identifier: Apache-2.0
"""Figures as JSON, and the pages' tables and plot of them."""

import json

from tests.benchmark.scheduling import goals, plot
from tests.benchmark.scheduling.arms import RECOMMENDED, REPLACEMENT, Arm, arms
from tests.benchmark.scheduling.pools import POOLS

FIGURES = "scheduling-cost.json"
COST = "scheduling-cost.txt"
PLOT = "scheduling-cost.svg"
# One file of a page each: "limits" alone is of several studies.
OTHERS = (
    *("floor", "paired", "elastic", "packing", "filling", "starving"),
    "throughput",
)


def write(figures, directory):
    """Write all files into a directory."""
    text = json.dumps(figures, indent=1) + "\n"
    (directory / FIGURES).write_text(text, encoding="utf-8")
    if "cost" in figures:
        (directory / COST).write_text(cost(figures["cost"]), encoding="utf-8")
        (directory / PLOT).write_text(
            plot.svg(figures["cost"]["figures"]), encoding="utf-8"
        )
    for name in set(OTHERS) & set(figures):
        path = directory / f"scheduling-{name}.txt"
        path.write_text(globals()[name](figures[name]), encoding="utf-8")


def made(study):
    """Return how figures came about, as a paragraph with the command."""
    how = study["made"]
    packages = ", ".join(f"{name} {of}" for name, of in how["packages"].items())
    commands = "".join(f"    $ {line}\n" for line in how["command"].split("\n"))
    before, after = how["load"]
    return (
        f"::\n\n{commands}\n"
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


def cost(study):
    """Return the tables of what requests cost."""
    found = study["figures"]
    parts = [made(study)]
    lines = [
        (
            *(goal.words, f"{goal.most:.2f}", goal.measured(found, idle=True)),
            *(goal.measured(found), goal.verdict(found)),
        )
        for goal in goals.GOALS
    ]
    parts += [table(("goal", "at most", "nothing taken", "worst", ""), lines)]
    for hosts in sorted({record["hosts"] for record in found}):
        parts += [f"**{hosts} hosts**\n\n", ratios(found, hosts)]
    largest = max(record["hosts"] for record in found)
    for name, request in (("dedicated", "high-performance"), ("shared", "general")):
        if (name, request, 0.0) not in _by_key(found, largest):
            continue
        parts += [f"**{name}, nothing taken, {largest} hosts, CPU ms**\n\n"]
        parts += [phases(found, name, request, largest)]
    return "".join(parts)


def columns(pool):
    """Return the arms of a pool: stock, and what is shown as a ratio to it."""
    return arms(pool.schemes)


def ratios(found, hosts):
    """Return a table with a line for each pool, request and share taken."""
    head = ["hosts", "request", "taken", "stock, ms", "hosts seen", "replaced"]
    head += ["filter only", "replaced", "scheme", "replaced", str(RECOMMENDED)]
    lines = []
    by_key = _by_key(found, hosts)
    for (pool, request, taken), by_arm in by_key.items():
        stock, *others = [by_arm[arm.name] for arm in columns(POOLS[pool])]
        spent = round(stock["scheduler_ms"] + stock["placement_ms"])
        seen = "{} / {}".format(stock["hosts_seen"], others[-1]["hosts_seen"])
        cells = [f"{other['ratio']:.2f}" for other in others]
        lines.append((pool, request, f"{taken:.0%}", spent, seen, *cells))
    return table(head, lines)


def _by_key(found, hosts):
    by_key = {}
    for record in found:
        if record["hosts"] == hosts:
            key = record["pool"], record["request"], record["taken"]
            by_key.setdefault(key, {})[record["arm"]] = record
    return by_key


def phases(found, pool, request, hosts):
    """Return a table of the phases of an idle pool's requests."""
    by_arm = _by_key(found, hosts)[pool, request, 0.0]
    shown = [Arm("stock"), Arm("slots"), Arm("slots", REPLACEMENT)]
    shown.append(Arm("slots", REPLACEMENT, RECOMMENDED))
    records = [by_arm[arm.name] for arm in shown]
    names = sorted(
        {name for record in records for name in record["phases"]},
        key=lambda name: -max(record["phases"].get(name, 0) for record in records),
    )
    lines = [
        ("Placement, all requests", *(f"{r['placement_ms']:.0f}" for r in records)),
        *(
            (name, *(f"{r['phases'].get(name, 0):.1f}" for r in records))
            for name in names
        ),
        ("candidates", *(r["candidates"] for r in records)),
    ]
    return table(("phase", *(arm.name for arm in shown)), lines)


def floor(study):
    """Return the table of what a HostState costs."""
    figures = study["figures"]
    lines = [(name, f"{us:.0f}") for name, us in figures["us"].items()]
    words = (
        f"{figures['hosts']} hosts, whose topologies are {figures['texts']} different "
        "texts:\n\n"
    )
    return made(study) + words + table(("part", "CPU us per host"), lines)


def paired(study):
    """Return the table of NUMATopologyFilter's cost in pairs."""
    lines = [
        (
            each["arm"],
            each["pairs"],
            f"{each['ratio']:.3f}",
            "{:.3f} to {:.3f}".format(*each["quartiles"]),
            "{:.3f} to {:.3f}".format(*each["range"]),
        )
        for each in study["figures"]
    ]
    head = ("against stock", "pairs", "median ratio", "middle half", "all")
    return made(study) + table(head, lines)


def elastic(study):
    """Return the table of what Placement's strategies show of elastic hosts."""
    lines = [
        (
            each["strategy"],
            each["limit"],
            each["candidates"],
            f"{each['hosts_seen']} of {each['hosts']}",
            f"{each['scheduler_ms']:.0f}",
            f"{each['placement_ms']:.0f}",
        )
        for each in study["figures"]
    ]
    head = ("[placement]", "limit", "candidates", "hosts seen")
    return made(study) + table((*head, "scheduler ms", "Placement ms"), lines)


def packing(study):
    """Return the table of the hosts that lose their slots to general VMs."""
    lines = [
        (
            each["limit"],
            "at random" if each["random"] else "first ones",
            each["vms"],
            each["hosts_used"],
            each["refused"],
        )
        for each in study["figures"]
    ]
    head = ("limit", "candidates", "VMs", "hosts used", "refused")
    return made(study) + table(head, lines)


def filling(study):
    """Return the table of the VMs that an empty pool takes until one is refused."""
    lines = [
        (each["limit"], each["hosts"], each["room"], each["placed"])
        for each in study["figures"]
    ]
    return made(study) + table(("limit", "hosts", "room for", "VMs placed"), lines)


def starving(study):
    """Return the table of the requests refused although a host would take them."""
    lines = {}
    for each in study["figures"]:
        scheme = Arm(each["scheme"]).name
        key = (each["pool"], scheme, each["request"], f"{each['taken']:.0%}")
        share = each["refused"] / each["requests"]
        if not each["room"]:
            share = "no room"
        lines.setdefault(key, {})[each["limit"]] = (
            share if isinstance(share, str) else f"{share:.1%}"
        )
    limits = sorted({each["limit"] for each in study["figures"]}, reverse=True)
    head = ("hosts", "scheme", "request", "taken", *map(str, limits))
    found = [
        (*key, *(by_limit[limit] for limit in limits))
        for key, by_limit in lines.items()
    ]
    return made(study) + table(head, found)


def throughput(study):
    """Return the table of requests a second."""
    lines = [
        (
            each["schedulers"],
            each["arm"],
            each["hosts"],
            f"{each['placed']} of {each['requests']}",
            f"{each['per_second']:.2f}",
            f"{each['cpu_ms_each']:.0f}",
        )
        for each in study["figures"]
    ]
    head = ("schedulers", "arm", "hosts", "placed", "requests/s")
    return made(study) + table((*head, "scheduler CPU ms each"), lines)


def text(figures):
    """Return what a terminal is shown: all tables."""
    studies = {"cost": cost} | {name: globals()[name] for name in OTHERS}
    return "\n".join(
        f"{name}\n{'=' * len(name)}\n\n{studies[name](figures[name])}"
        for name in figures
    )
