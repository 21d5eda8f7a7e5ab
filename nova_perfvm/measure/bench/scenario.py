# SPDX-License-Identifier: Apache-2.0
"""The scenario file: who measures what, together with whom, and how often."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
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
from nova_perfvm.measure.bench.tools import cyclictest, fio, iperf3, sysbench
from nova_perfvm.measure.bench.tools.tool import Place, Run
from nova_perfvm.printable import number_of

_LAST_PORT: Final = 65535
# With fewer no interval can be told.
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
    :ivar ssh: where it is; None for this machine
    :ivar ssh_options: options of ssh
    :ivar prefix: what stands before every command there, such as
        ``ip netns exec blue``
    :ivar node: the NUMA node that numactl binds its CPUs and memory to; None for
        no binding
    """

    name: _Name = field(metadata=NAME)
    kind: Literal["host", "guest"]
    ssh: _Destination | None = None
    ssh_options: Words = ()
    prefix: Words = ()
    node: Annotated[int, count(0, 1023, "a NUMA node")] | None = None


@dataclass(frozen=True, slots=True)
class Tools:
    """What is measured, in this order."""

    sysbench_cpu: sysbench.CPU | None = None
    sysbench_memory: sysbench.Memory | None = None
    cyclictest: cyclictest.CyclicTest | None = None
    iperf3: iperf3.IPerf3 | None = None
    fio: fio.Fio | None = None

    def used(self) -> Iterator[Any]:
        """Yield the tools that the scenario has."""
        for one in fields(self):
            tool = getattr(self, one.name)
            if tool is not None:
                yield tool


Members = Annotated[
    tuple[Annotated[str, Expected("the name of a target")], ...],
    some("a list of targets, each once"),
    EACH_ONCE,
]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Every key of a scenario file.

    :ivar repeats: rounds that are measured
    :ivar warm_up: rounds before them whose figures are dropped
    :ivar grace_s: how much longer than planned a run may take
    :ivar prepare_s: how long fio may write its files at first
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

    def target(self, name: str) -> Target:
        """Return the target of a name."""
        return next(target for target in self.targets if target.name == name)

    def as_document(self) -> dict[str, Any]:
        """Return it as a file has it, every key written out."""
        return as_document("scenario", self, whole=True)

    def mistakes(self) -> Iterator[Mistake]:
        """List what contradicts itself."""
        if not any(self.tools.used()):
            names = ", ".join(one.name for one in fields(Tools))
            yield Mistake(("tools",), f"no tool: name one of {names}")
        server = self.tools.iperf3.server if self.tools.iperf3 else None
        targets = [target.name for target in self.targets]
        known = ", ".join(targets)
        for name, group in self.groups.items():
            for number, who in enumerate(group):
                place = ("groups", name, str(number))
                if who not in targets:
                    yield Mistake(place, f"no target {who!r}; there are: {known}")
                elif who == server:
                    yield Mistake(
                        place, f"{who} serves iperf3: it cannot measure, too; remove it"
                    )
        yield from self._same_size()
        busy = {who for group in self.groups.values() for who in group}
        for who in targets:
            if who not in busy and who != server:
                yield Mistake(
                    ("targets", who), "in no group: add it to one, or leave it out"
                )
        if self.tools.iperf3:
            yield from self._iperf3_mistakes(self.tools.iperf3, targets)

    def _same_size(self) -> Iterator[Mistake]:
        pairs = itertools.combinations(self.groups.items(), 2)
        for (name, one), (other, two) in pairs:
            both = [who for who in two if who in one]
            if len(one) == len(two) and both:
                yield Mistake(
                    ("groups", other),
                    f"{', '.join(both)} is in {name}, too, which has as many targets: "
                    "the figures could not be told apart; remove one",
                )

    def _iperf3_mistakes(
        self, tool: iperf3.IPerf3, targets: list[str]
    ) -> Iterator[Mistake]:
        if tool.server not in targets:
            yield Mistake(
                ("tools", "iperf3", "server"),
                f"no target {tool.server!r}; there are: {', '.join(targets)}",
            )
        last = tool.last_port(max(map(len, self.groups.values())))
        if last > _LAST_PORT:
            yield Mistake(
                ("tools", "iperf3", "port"),
                f"the targets at once need ports up to {last}: begin lower",
            )

    def steps(self, seed: int) -> Iterator[Step]:
        """Yield what is run, in this order.

        Whatever changes in the course of time is to hit all alike: in each round a tool
        measures all groups one after the other, and over the rounds each of them is
        equally often the first, give or take one.

        :param seed: what the order is drawn by
        """
        in_turn = []
        for index, alike in enumerate(self._in_turn()):
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

    def _in_turn(self) -> Iterator[list[Step]]:
        """Yield the steps that are compared with each other, of no round yet."""
        alike = [
            [Step(0, name, runs) for runs in self._runs(group)]
            for name, group in self.groups.items()
        ]
        yield from map(list, zip(*alike, strict=True))

    def _runs(self, group: tuple[str, ...]) -> list[dict[str, Run]]:
        places = [Place(who, number) for number, who in enumerate(group)]
        of_each = [
            [run for tool in self.tools.used() for run in tool.runs(place)]
            for place in places
        ]
        return [
            dict(zip(group, runs, strict=True)) for runs in zip(*of_each, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Step:
    """What a group does at once.

    :ivar round: 0 and below are warm-up
    :ivar runs: {target: its run}
    """

    round: int
    group: str
    runs: dict[str, Run]

    @property
    def run(self) -> Run:
        """One of the runs; they differ in their command lines only."""
        return next(iter(self.runs.values()))

    @property
    def key(self) -> str:
        """The key by which a resumed run finds it."""
        return f"{self.round}/{self.group}/{self.run.name}/{self.run.threads}"

    @property
    def title(self) -> str:
        """The title that is shown while it runs."""
        what = "warm-up" if self.round < 1 else f"round {self.round}"
        threads = number_of(self.run.threads, "thread")
        return f"{what}, {self.group}: {self.run.name}, {threads}"


def load(path: str | Path) -> Scenario:
    """Read a scenario file.

    :raises DocumentError: with every mistake of the file
    :raises UnreadableFileError: when it cannot be read
    """
    return load_document("scenario", Scenario, path)


def parse(text: str, source: str = "scenario") -> Scenario:
    """Return the scenario that a YAML text declares.

    :param source: the text's name in messages
    :raises DocumentError: with every mistake of the text, each with its line
    """
    return parse_document("scenario", Scenario, text, source)
