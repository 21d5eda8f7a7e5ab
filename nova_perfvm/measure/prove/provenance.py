# SPDX-License-Identifier: Apache-2.0
"""The origin of a record, and whether a single run of ``prove`` made the record.

Other runs are measurements, not proofs.  A forged file is not detected:
whoever writes one by hand can write the origin, too.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, Final

from nova_perfvm import cpuset
from nova_perfvm.documents.keys import Expected
from nova_perfvm.measure.bench import busy_vms
from nova_perfvm.measure.bench import scenario as scenarios
from nova_perfvm.measure.bench.record import reading_run
from nova_perfvm.measure.bench.scenario import Scenario
from nova_perfvm.measure.bench.tools import memory
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed import domains, topology
from nova_perfvm.measure.prove import conditions, plan, run_figures
from nova_perfvm.measure.prove.inputs import BOOT, UUID, Inputs
from nova_perfvm.measure.prove.run_notes import RunNotes, files_of
from nova_perfvm.measure.samples import Samples, Text

PROGRAM: Final = importlib.metadata.version("nova-perfvm")

Run = Mapping[str, Any]


@dataclass(frozen=True)
class MadeOf:
    """The origin of a record.

    Collected files before the first step, with their counters, stand in
    ``measured.run.sessions``, those after the last in ``host`` and ``guests``.

    :ivar program: version of this package
    :ivar scenario_sha256: hash of the scenario, in hex
    :ivar order: keys of the steps, in the order of the run
    :ivar boot_id: boot ID of the host
    :ivar vms: UUIDs from DMI of the guests; empty text for a guest without a UUID
    """

    program: Text
    scenario_sha256: Text
    order: tuple[str, ...]
    boot_id: str
    vms: tuple[str, ...]


@dataclass(frozen=True)
class ProofRecord:
    """All that a proof rests on.

    :ivar policy: the policy file's text
    :ivar host: the host, collected after the last step, while the VMs were busy;
        ``guests``: the VMs, collected at the same time
    :ivar measured: figures, with the files collected before the first step
    :ivar baseline: figures of a host from an earlier run; None without such a run
    :ivar verdict: the verdict at the record's writing, for readers of the file
    """

    made_of: MadeOf
    flavor: Text
    policy: Text
    host: Collected
    guests: tuple[Collected, ...]
    measured: Samples
    baseline: Samples | None = None
    verdict: Annotated[Mapping[str, Any], Expected("a verdict")] | None = None


def made_of(run: Run, host: Collected, guests: tuple[Collected, ...]) -> MadeOf:
    """Return the origin of a record.

    :raises RecordError: when the run is not one of a proof
    """
    with reading_run("the record"):
        text = json.dumps(run["scenario"], sort_keys=True)
        return MadeOf(
            PROGRAM,
            hashlib.sha256(text.encode()).hexdigest(),
            tuple(step["key"] for step in run["steps"]),
            _identity(host, BOOT),
            tuple(_identity(guest, UUID) for guest in guests),
        )


def _identity(of: Collected, path: str) -> str:
    return of.files.get(path, "").strip()


def no_proof(found: ProofRecord, of: Inputs) -> Iterator[str]:
    """Yield why a record is of a measurement, and no proof.

    Call within :func:`reading_run`: another program may have written the run.
    """
    if found.baseline is not None:
        yield "foreign baseline"
    noted, run, host = found.made_of, found.measured.run, found.host
    if noted.program != PROGRAM:
        yield f"made by version {noted.program}"
    if noted != made_of(run, host, found.guests):
        yield "changed since it was made"
    scenario = scenarios.parse(json.dumps(run["scenario"]))
    try:
        nodes = {n.number: n.cpus for n in topology.nodes(host) if n.cpus}
    except NotReadError:
        nodes = {}
    for other in plan.differences(scenario, of.flavor, of.vm_class, tuple(nodes)):
        yield f"not the built-in scenario: {other}"
    yield from _unbound(run, scenario, nodes)
    yield from _disturbed(of.run)
    yield from _in_caches(run)
    yield from _generator(run, scenario, host)
    figures = found.measured.measurements
    yield from run_figures.contradictions(run, scenario, figures, host)
    yield from _resumed(run)


def _unbound(
    run: Run, scenario: Scenario, nodes: Mapping[int, frozenset[int]]
) -> Iterator[str]:
    """Look for a host's run that was not allowed exactly the CPUs of its nodes.

    :param nodes: {NUMA node: its CPUs}
    """
    for step in run["steps"]:
        for target in map(scenario.target, step["targets"]):
            if target.kind != "host" or target.node is None:
                continue
            bound = target.node, *target.more_nodes
            cpus = step.get("affinity", {}).get(target.name, "")
            wanted = frozenset[int]().union(*(nodes.get(n, ()) for n in bound))
            if cpuset.parse(cpus) != wanted:
                yield (
                    f"step {step['key']}: {target.name} ran on CPUs "
                    f"{cpus or 'unknown'}, not on those of node "
                    f"{', '.join(map(str, bound))}"
                )
                return


def _disturbed(notes: RunNotes) -> Iterator[str]:
    """Look whether anything ran beside the benchmark on the host."""
    found = [one.loudest for one in notes.beside.values() if one.loudest]
    worst = max(found, key=attrgetter("share"), default=None)
    if worst and worst.share > busy_vms.MOST_OTHERS:
        yield f"{worst}; at most {busy_vms.MOST_OTHERS:.0%} may be"


def _in_caches(run: Run) -> Iterator[str]:
    """Look whether memory was measured on more than any machine's caches hold."""
    looks = [look for one in run["sessions"] for look in one["targets"].values()]
    most = max(look["last_level_cache_bytes"] for look in looks)
    size_mb = run["working_set_mb"]
    if not 0 < memory.TIMES_LAST_LEVEL * most <= size_mb * 2**20:
        yield f"memory was measured on {size_mb} MiB, of which caches hold a part"


def _generator(run: Run, scenario: Scenario, host: Collected) -> Iterator[str]:
    """Look whether the network was measured against a third machine."""
    network = scenario.tools.iperf3
    if network is None:
        return
    try:
        vms = {uuid.lower() for uuid in domains.uuids(host)}
    except NotReadError:
        vms = set()
    for session in run["sessions"]:
        files = {who: files_of(look) for who, look in session["targets"].items()}
        of_it = files.pop(network.server, {})
        boot = of_it.get(BOOT, "").strip()
        if not boot:
            yield "which machine the generator is was not seen"
        # A container has the boot of its host.
        elif (
            boot in {one.get(BOOT, "").strip() for one in files.values()}
            or of_it.get(UUID, "").strip().lower() in vms
        ):
            yield "the generator is the host, or a VM on it: name a third machine"


def _resumed(run: Run) -> Iterator[str]:
    """Look whether machines were as before whenever a run was gone on with."""
    first, *later = run["sessions"]
    for session in later:
        for who, look in session["targets"].items():
            was = files_of(first["targets"][who])
            for words in conditions.changed(was, files_of(look)):
                yield f"resumed after {who} changed: {words}"
