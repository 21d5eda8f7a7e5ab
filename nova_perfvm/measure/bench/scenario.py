# SPDX-License-Identifier: Apache-2.0
"""The scenario file: who measures what, together with whom, and how often."""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from nova_perfvm.documents.document import as_document, load_document, parse_document
from nova_perfvm.documents.keys import (
    EACH_ONCE,
    NAME,
    Expected,
    Form,
    count,
    matching,
    some,
)
from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.measure.bench.tools import cyclictest, fio, iperf3, memory, sysbench
from nova_perfvm.measure.bench.tools.tool import Place, Run
from nova_perfvm.printable import number_of

_LAST_PORT: Final = 65535
# Fewer rounds give no interval.
LEAST_REPEATS: Final = 5

_Name = Annotated[
    str,
    matching(
        "[A-Za-z0-9][A-Za-z0-9._-]{0,62}",
        "a name of letters, digits, '.', - and _, at most 63 long",
    ),
]
Words = Annotated[tuple[Annotated[str, some("text")], ...], Expected("a list of words")]
# A text that begins with - would be an option of ssh.
_Destination = Annotated[
    str, matching(r"[^-\s]\S*", "where ssh goes, such as root@192.0.2.7")
]


@dataclass(frozen=True, slots=True)
class Target:
    """A machine, or a part of one, that measures.

    :ivar kind: host, the baseline; or guest
    :ivar ssh: address of the target for ssh; None for this machine
    :ivar ssh_options: options of ssh
    :ivar prefix: prefix of every command, such as ``ip netns exec blue``
    :ivar node: the NUMA node that numactl binds commands to; None for no binding
    :ivar more_nodes: further NUMA nodes of the binding
    :ivar fio_directory: directory on the disk to measure; None for the scenario's
    """

    name: _Name = field(metadata=NAME)
    kind: Literal["host", "guest"]
    ssh: _Destination | None = None
    ssh_options: Words = ()
    prefix: Words = ()
    node: Annotated[int, count(0, 1023, "a NUMA node")] | None = None
    fio_directory: fio.Directory | None = None
    more_nodes: Annotated[
        tuple[Annotated[int, count(0, 1023, "a NUMA node")], ...],
        Expected("a list of NUMA nodes"),
    ] = ()


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of a scenario, in the order in which they measure."""

    sysbench_cpu: sysbench.CPU | None = None
    memory_bandwidth: memory.Bandwidth | None = None
    memory_latency: memory.Latency | None = None
    cyclictest: cyclictest.CyclicTest | None = None
    iperf3: iperf3.IPerf3 | None = None
    fio: fio.Fio | None = None

    def used(self) -> dict[str, Any]:
        """Return the tools that the scenario has: {key: tool}."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {key: tool for key, tool in found.items() if tool is not None}


Members = Annotated[
    tuple[Annotated[str, Expected("the name of a target")], ...],
    some("a list of targets, each once"),
    EACH_ONCE,
]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Every key of a scenario file.

    :ivar repeats: number of measured rounds
    :ivar warm_up: number of earlier rounds, whose figures are dropped
    :ivar grace_s: seconds by which a run may exceed its planned time
    :ivar prepare_s: seconds in which fio may write its files at first
    :ivar working_set_mb: memory that all threads of a memory benchmark use together;
        None for :data:`memory.TIMES_LAST_LEVEL` times the largest last-level cache
    """

    targets: Annotated[
        tuple[Target, ...], Form.BY_NAME, some("a mapping of names to targets")
    ]
    groups: Annotated[
        Mapping[_Name, Members], some("a mapping of names to groups of targets")
    ]
    tools: Tools
    repeats: Annotated[int, count(1, 1000, "rounds")] = LEAST_REPEATS
    warm_up: Annotated[int, count(0, 100, "rounds")] = 1
    grace_s: Annotated[int, count(1, 3600, "seconds")] = 60
    prepare_s: Annotated[int, count(1, 24 * 3600, "seconds")] = 3600
    working_set_mb: Annotated[int, count(1, 2**24, "MiB")] | None = None

    def target(self, name: str) -> Target:
        """Return the target of a name."""
        return next(target for target in self.targets if target.name == name)

    def as_document(self) -> dict[str, Any]:
        """Return the scenario as a file has it, every key written out."""
        return as_document("scenario", self, whole=True)

    def place(self, who: str, number: int = 0, working_set_mb: int = 0) -> Place:
        """Return where a tool's command line will run."""
        return Place(who, number, working_set_mb, self.target(who).fio_directory)

    @property
    def needs_working_set(self) -> bool:
        """Whether a tool, or a load, works on memory that no cache holds."""
        tools = self.tools
        return bool(tools.memory_bandwidth or tools.memory_latency or self.loads)

    @property
    def loads(self) -> bool:
        """Whether a load that is not measured keeps targets busy in a step."""
        tool = self.tools.cyclictest
        return bool(tool and tool.loaded)

    def mistakes(self) -> Iterator[Mistake]:
        """Yield the contradictions between keys of the scenario."""
        targets, network = [target.name for target in self.targets], self.tools.iperf3
        if not self.tools.used():
            names = ", ".join(one.name for one in fields(Tools))
            yield Mistake(("tools",), f"no tool: name one of {names}")
        server = network.server if network else None
        if network:
            place = ("tools", "iperf3")
            yield from _unknown((*place, "server"), network.server, targets)
            last = network.last_port(max(map(len, self.groups.values())))
            if last > _LAST_PORT:
                reason = f"the targets at once need ports up to {last}: begin lower"
                yield Mistake((*place, "port"), reason)
        for name, group in self.groups.items():
            for number, who in enumerate(group):
                member = ("groups", name, str(number))
                yield from _unknown(member, who, targets)
                if who == server:
                    reason = f"{who} serves iperf3: it cannot measure, too"
                    yield Mistake(member, f"{reason}; remove it")
        yield from self._target_mistakes(server)
        yield from self._group_mistakes()

    def _target_mistakes(self, server: str | None) -> Iterator[Mistake]:
        """Yield targets that nothing uses, and those without a directory for fio.

        :param server: the target that serves iperf3, which needs no group
        """
        measuring = set(itertools.chain.from_iterable(self.groups.values()))
        disk = self.tools.fio
        for target in self.targets:
            place = ("targets", target.name)
            if target.name not in measuring and target.name != server:
                yield Mistake(place, "in no group: add it to one, or leave it out")
            nowhere = disk and not (disk.directory or target.fio_directory)
            if nowhere and target.name in measuring:
                reason = "missing, as tools.fio has no directory"
                yield Mistake((*place, "fio_directory"), reason)

    def _group_mistakes(self) -> Iterator[Mistake]:
        pairs = itertools.combinations(self.groups.items(), 2)
        for (name, one), (other, two) in pairs:
            both = ", ".join(who for who in two if who in one)
            if len(one) == len(two) and both:
                reason = f"{both} is in {name}, too, which has as many targets"
                remedy = "the figures could not be told apart; remove one"
                yield Mistake(("groups", other), f"{reason}: {remedy}")

    def steps(self, seed: int, working_set_mb: int = 0) -> Iterator[Step]:
        """Yield the steps of a run, in order.

        Slow changes of a machine are to hit all groups alike: in each round a tool
        measures all groups one after the other, and over the rounds each group is
        equally often the first, give or take one.

        :param seed: seed of the order
        :param working_set_mb: memory that memory benchmarks use
        """
        in_turn = []
        for index, alike in enumerate(self._in_turn(working_set_mb)):
            lot = random.Random(f"{seed} {index}")  # noqa: S311
            turns = lot.sample(range(self.repeats), self.repeats)
            in_turn.append((lot.sample(alike, len(alike)), turns))
        for number in range(1 - self.warm_up, self.repeats + 1):
            for alike, turns in in_turn:
                # Of two, too, each is equally often before the other.
                again, first = divmod(turns[(number - 1) % self.repeats], len(alike))
                ordered = [*alike[first:], *alike[:first]]
                for step in reversed(ordered) if again % 2 else ordered:
                    yield replace(step, round=number)

    def _in_turn(self, working_set_mb: int) -> Iterator[list[Step]]:
        """Yield, for each tool's run, the steps of all groups; without a round."""
        for tool in self.tools.used().values():
            of_groups = []
            for name, group in self.groups.items():
                places = (
                    self.place(who, number, working_set_mb)
                    for number, who in enumerate(group)
                )
                at_once = zip(*map(tool.runs, places), strict=True)
                runs = (dict(zip(group, each, strict=True)) for each in at_once)
                of_groups.append([Step(0, name, r, working_set_mb) for r in runs])
            yield from map(list, zip(*of_groups, strict=True))


@dataclass(frozen=True, slots=True)
class Step:
    """The runs of a group of targets at once.

    :ivar round: number of the round; warm-up has 0 and below
    :ivar group: name of the group
    :ivar runs: {target: run of the tool on the target}
    :ivar working_set_mb: memory that the load beside the runs uses
    """

    round: int
    group: str
    runs: dict[str, Run]
    working_set_mb: int = 0

    @property
    def run(self) -> Run:
        """One of the runs; they differ in their command lines only."""
        return next(iter(self.runs.values()))

    @property
    def loaded(self) -> list[str]:
        """The targets whose CPUs are kept busy while they measure."""
        return [who for who, run in self.runs.items() if run.loaded]

    @property
    def key(self) -> str:
        """The key by which a resumed run finds the step."""
        return f"{self.round}/{self.group}/{self.run.name}/{self.run.threads}"

    @property
    def title(self) -> str:
        """The title that is shown while the step runs."""
        what = "warm-up" if self.round < 1 else f"round {self.round}"
        threads = number_of(self.run.threads, "thread")
        return f"{what}, {self.group}: {self.run.name}, {threads}"


def _unknown(
    place: tuple[str, ...], name: str, known: Collection[str]
) -> Iterator[Mistake]:
    if name not in known:
        yield Mistake(place, f"no target {name!r}; there are: {', '.join(known)}")


def load(path: str | Path) -> Scenario:
    """Read a scenario file.

    :raises DocumentError: with every mistake of the file
    :raises UnreadableFileError: when the file cannot be read
    """
    return load_document("scenario", Scenario, path)


def parse(text: str, source: str = "scenario") -> Scenario:
    """Return the scenario that a YAML text declares.

    :param source: the text's name in messages
    :raises DocumentError: with every mistake of the text, each with its line
    """
    return parse_document("scenario", Scenario, text, source)
