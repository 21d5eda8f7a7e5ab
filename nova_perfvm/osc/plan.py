# SPDX-License-Identifier: Apache-2.0
"""``plan servers``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from nova_perfvm.changes.what_if import emptying
from nova_perfvm.changes.what_if.emptying import Emptied
from nova_perfvm.diagnose import capacity
from nova_perfvm.documents import textfile
from nova_perfvm.exceptions import PerfVMError, ShapeError
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import Table
from nova_perfvm.osc.capacity import counted
from nova_perfvm.osc.judging import LookingLister
from nova_perfvm.osc.output import ProgressLine
from nova_perfvm.policy import HostShape, Policy
from nova_perfvm.sizing import fio_results, observed, prometheus, ratios, sadf, services
from nova_perfvm.sizing import plan as planning
from nova_perfvm.sizing.carriers import Conditions, DiskLimits
from nova_perfvm.sizing.disk import Count
from nova_perfvm.sizing.hosts import HostModel, model_of
from nova_perfvm.sizing.plan import ServersPlan, Wishes
from nova_perfvm.sizing.ratios import VMRatios
from nova_perfvm.sizing.services import Service

# A week of sadf, of a server with many devices.
_MOST_BYTES: Final = 256 * 1024 * 1024
_SOME_STAY: Final = 1
_NONE_CARRIED: Final = 2
_COUNTS: Final = ("demonstrated", "rule", "extrapolated")


def _percent(text: str) -> float:
    """Take ``20%`` or ``20`` as 0.2; 0.2 without a sign may be meant as 20 %."""
    found = re.fullmatch(r"\d{1,3}|(\d{1,3}(\.\d+)?) ?%", text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a percentage such as 20%")
    return float(text.strip(" %")) / 100


def _shape(text: str) -> HostShape:
    try:
        return HostShape.parse(text)
    except ShapeError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc


def _period(text: str) -> str:
    if re.fullmatch(r"[1-9]\d{0,4}[mhdw]", text) is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a period such as 7d")
    return text


class PlanServers(LookingLister):
    """Calculate how many hosts the services of today's servers need as VMs.

    A file is a table of services (CSV, or YAML of kind services), or what sadf -j
    printed on one server. Columns of the table: name, servers, cpus, cpu_percent,
    memory_gb, used_memory_gb, network_gbps, read_iops, write_iops, latency_ms, peak
    (max, p99 or p95), latency_sensitive, divisible, shares_host, class, watts and cost.
    The lines before the table say how each service is carried.
    Exits with 0 if VMs carry all services, 1 if some stay on their servers, 2 if all
    stay.
    """

    arguments = (
        opt.option(
            "files FILE",
            f"table of services, or output of {sadf.COMMAND}; - for standard input",
            nargs="*",
        ),
        opt.option(
            "--prometheus URL",
            "read node_exporter's metrics of today's servers from this Prometheus",
        ),
        opt.option(
            "--range PERIOD",
            "of Prometheus (default: %(default)s)",
            type=_period,
            default="7d",
        ),
        opt.option(
            "--peak",
            "the value of a server's samples that is its peak (default: %(default)s)",
            choices=tuple(observed.QUANTILES),
            default="max",
        ),
        opt.option(
            "--service-of REGEX",
            "expression for a server's name, whose first group is its service "
            "(default: the name without number and domain)",
            default=observed.BY_NAME,
        ),
        opt.repeated(
            "--record FILE",
            "record of a proof, or measurements, with the ratios of VMs to their host; "
            "repeat it",
            type=opt.file_path,
        ),
        opt.repeated(
            "--ratios",
            "use the ratios of this source document; may be repeated (default: "
            f"{ratios.DEFAULT} without --record)",
            choices=tuple(ratios.DOCUMENTS),
        ),
        opt.option(
            "--host-shape SHAPE",
            "NUMA nodes x cores of a host (default: the policy's first host_shape; "
            "with --cloud the most common)",
            type=_shape,
        ),
        opt.option(
            "--memory-gb N",
            "memory of a host in GiB (default: with --cloud the least)",
            type=opt.count,
        ),
        opt.option("--link-gbps GBIT", "link of a host in Gbit/s", type=opt.positive),
        opt.option("--host-watts W", "power of a host under load", type=opt.positive),
        opt.option(
            "--host-cost COST", "cost of a host, as in the table", type=opt.positive
        ),
        opt.option(
            "--survive N",
            "spare hosts of each pool (default: %(default)s)",
            type=opt.count_or_0,
            default=0,
        ),
        opt.option(
            "--headroom PERCENT",
            "growth of CPUs, memory, network and I/O to plan for, such as 20%% "
            "(default: none)",
            type=_percent,
            default=0.0,
        ),
        opt.file("--alone", "fio's result of one VM, alone on its disk"),
        opt.repeated(
            "--contended FILE",
            "fio's result of one of several VMs that ran at once; repeat it",
            type=opt.file_path,
        ),
        opt.option(
            "--disk-count",
            "the count of VMs that the disk limits a host to (default: demonstrated, "
            "without --contended rule)",
            choices=_COUNTS,
        ),
        opt.option(
            "--time-limit S",
            "seconds to search for fewer hosts in each pool (default: %(default)g)",
            type=opt.positive,
            default=5.0,
        ),
        opt.flag("--cloud", "read the cloud's hosts, and say which can be emptied"),
        opt.MAX_RATIO,
        opt.option(
            "--by",
            "list hosts, the VMs of each service, the disk's three counts for each "
            "service, or with --cloud the hosts that can be emptied (default: hosts, "
            "without services emptied)",
            choices=("hosts", "services", "disk", "emptied"),
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        policy = self.policy(parsed_args)
        found = tuple(_services(parsed_args))
        by = parsed_args.by or ("hosts" if found else "emptied")
        looks = parsed_args.cloud or parsed_args.snapshot is not None
        if not (found or looks):
            raise PerfVMError("name a table of services, --prometheus or --cloud")
        if by == "emptied" and not looks:
            raise PerfVMError("--by emptied needs --cloud, or --snapshot FILE")
        if by != "emptied" and not found:
            raise PerfVMError(f"--by {by} needs a table of services")
        # Arguments before requests to the cloud: a mistake fails at once.
        conditions = _conditions(parsed_args)
        emptied: tuple[Emptied, ...] = ()
        shape, memory_gb = policy.host_shapes[0], parsed_args.memory_gb
        if looks:
            snapshot = self.snapshot(parsed_args, policy)
            with ProgressLine() as progress:
                settings = self.settings(parsed_args, policy)
                most = parsed_args.max_ratio
                emptied = emptying.emptied(
                    policy, snapshot, settings, progress, max_ratio=most
                )
            slots = counted("cloud", policy, snapshot, settings)
            self.tell(
                *(
                    f"class {s.class_name}: {s.free} of {s.total} slots are free"
                    for s in slots
                ),
                *capacity.notes(policy, snapshot),
                emptying.in_words(snapshot, emptied),
                *(emptied[-1].notes if emptied else ()),
            )
            # The cloud's hosts may show no NUMA nodes.
            if found and None in {parsed_args.host_shape, memory_gb}:
                shape, least_gb = model_of(snapshot)
                memory_gb = memory_gb or least_gb
        if by == "emptied":
            return _emptied_table(emptied)
        if memory_gb is None:
            raise PerfVMError("name the memory of a host with --memory-gb")
        model = HostModel(
            parsed_args.host_shape or shape,
            memory_gb,
            conditions.network_gbps,
            watts=parsed_args.host_watts,
            cost=parsed_args.host_cost,
        )
        return self._planned(parsed_args, policy, model, found, conditions, emptied)

    def _planned(
        self,
        parsed_args: argparse.Namespace,
        policy: Policy,
        model: HostModel,
        found: tuple[Service, ...],
        conditions: Conditions,
        emptied: tuple[Emptied, ...],
    ) -> Table:
        wishes = Wishes(parsed_args.survive, parsed_args.time_limit)
        plan = planning.plan(policy, model, found, conditions, wishes)
        staying = [one for one in plan.carried if one.size is None]
        if staying:
            whole = len(staying) == len(plan.carried)
            self.exit_status = _NONE_CARRIED if whole else _SOME_STAY
        given = parsed_args.memory_gb is not None
        least = "" if given else " (the least of the cloud's hosts)"
        self.tell(
            *(one.words(conditions) for one in plan.carried),
            *planning.notes(plan),
            f"each host: {model.shape} CPUs, {model.memory_gb} GiB{least}",
            plan.sentence,
        )
        if emptied:
            needed = plan.own.hosts + plan.own.spare
            mine = min(needed, len(emptied))
            self.tell(
                f"hosts needed: {mine} that can be emptied, {needed - mine} new ones; "
                "free room on the other hosts is not counted"
            )
        if parsed_args.by == "services":
            return _services_table(plan)
        if parsed_args.by == "disk":
            return self._disk_table(plan)
        return _hosts_table(plan)

    def _disk_table(self, plan: ServersPlan) -> Table:
        limits = plan.conditions.disk
        if limits is None:
            raise PerfVMError("--by disk needs --alone, and --contended for each VM")
        rows: list[tuple[Any, ...]] = []
        remarks: dict[str, None] = {}
        for one in plan.carried:
            growth = 1 + plan.conditions.headroom
            found = limits.plan(one.service, max(1, one.vms), growth)
            if found is None:
                continue
            remarks |= dict.fromkeys(found.remarks)
            rows += [
                (
                    *(one.service.name, row.count, row.vms, row.limit),
                    None if row.latency_ms is None else round(row.latency_ms, 2),
                    row.evidence,
                )
                for row in found.counts
            ]
        for remark in remarks:
            self.warn(remark)
        return ("Service", "Count", "VMs", "Limit", "Latency ms", "Evidence"), rows


def _services(parsed_args: argparse.Namespace) -> Iterator[Service]:
    """Yield the services that run on today's servers, from all files and Prometheus.

    :raises PerfVMError: when a service is given twice
    """
    known: dict[str, str] = {}
    for source, service in _from_sources(parsed_args):
        if service.name in known:
            raise PerfVMError(
                f"service {service.name} is in {known[service.name]} and in {source}, "
                "and would count twice: leave one out, or give each its own name"
            )
        known[service.name] = source
        yield service


def _from_sources(parsed_args: argparse.Namespace) -> Iterator[tuple[str, Service]]:
    """Yield each service with its file, or the programs that observed its servers."""
    outputs = []
    for path in parsed_args.files:
        text = textfile.read(path, _MOST_BYTES, "a table of services")
        if sadf.is_sadf(text):
            outputs += sadf.parse(text, path)
        else:
            yield from ((path, service) for service in services.parse(text, path))
    seen = ["sadf"] if outputs else []
    servers = sadf.servers(outputs, parsed_args.peak)
    if parsed_args.prometheus is not None:
        url, period = parsed_args.prometheus, parsed_args.range
        servers += prometheus.read(url, period, parsed_args.peak)
        seen.append("Prometheus")
    pattern, peak = parsed_args.service_of, parsed_args.peak
    for service in observed.services_of(servers, pattern, peak):
        yield " and ".join(seen), service


def _conditions(parsed_args: argparse.Namespace) -> Conditions:
    return Conditions(
        _ratios(parsed_args.ratios, parsed_args.record),
        parsed_args.headroom,
        parsed_args.link_gbps,
        _disk(parsed_args),
    )


def _ratios(names: Iterable[str], records: list[str]) -> VMRatios:
    parts = [ratios.DOCUMENTS[name] for name in names]
    if records:
        parts.append(ratios.of_records(records))
    return ratios.joined(parts or [ratios.DOCUMENTS[ratios.DEFAULT]])


def _disk(parsed_args: argparse.Namespace) -> DiskLimits | None:
    alone, contended = parsed_args.alone, parsed_args.contended
    counted: Count = parsed_args.disk_count or ("demonstrated" if contended else "rule")
    if alone is None:
        if contended or parsed_args.disk_count:
            raise PerfVMError("--contended and --disk-count go with --alone")
        return None
    if counted != "rule" and not contended:
        raise PerfVMError(f"--disk-count {counted} needs --contended for each VM")
    figures = [fio_results.read_fio(textfile.read(p), p) for p in (alone, *contended)]
    return DiskLimits(figures[0], tuple(figures[1:]), counted)


def _hosts_table(plan: ServersPlan) -> Table:
    columns = (
        *("Arm", "Hosts", "Spare", "Staying", "Total", "Fewer %", "Lower bound"),
        *(f"Total at {ratio:g}" for ratio in plan.sensitivity),
    )
    today = plan.today
    rows: list[tuple[Any, ...]] = [
        ("today", 0, 0, today, today, 0, today, *(today for _ in plan.sensitivity))
    ]
    rows += [
        (
            *(arm.name, arm.hosts, arm.spare, arm.staying, arm.total),
            *(round(plan.fewer(arm)), arm.bound),
            *(totals[arm.name] for totals in plan.sensitivity.values()),
        )
        for arm in plan.arms
    ]
    return columns, rows


def _services_table(plan: ServersPlan) -> Table:
    columns = (
        *("Service", "Servers", "Used CPUs", "Needed CPUs", "Class", "Flavor"),
        *("VMs", "Limit", "Peak", "Ratio", "Measured", "Reason"),
    )
    of = plan.conditions.ratios
    return columns, [
        (
            *(one.service.name, one.service.servers),
            *(round(one.service.used_cpus, 1), round(one.cpus, 1)),
            *(
                one.size.class_name if one.size else "",
                one.size.flavor if one.size else "",
            ),
            *(one.all_vms, one.limit, one.service.peak or ""),
            *(round(of.cpu or 0, 3), "yes" if of.measured else "no", one.reason),
        )
        for one in plan.carried
    ]


def _emptied_table(emptied: Iterable[Emptied]) -> Table:
    return ("Order", "Host", "Servers", "To"), [
        (
            *(number, one.host, len(one.moves)),
            ", ".join(sorted({move.target for move in one.moves})),
        )
        for number, one in enumerate(emptied, 1)
    ]
