# SPDX-License-Identifier: Apache-2.0
"""The scenario file: who measures what, together with whom, and how often."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from nova_perfvm import filekinds, textfile
from nova_perfvm.exceptions import FileMistakesError, Problem, UnreadableFileError
from nova_perfvm.measure.bench.tools import cyclictest, fio, iperf3, sysbench
from nova_perfvm.measure.bench.tools.tool import Place, Run
from nova_perfvm.policy.keys import NAME, Form, count, read, says, schema_of, written
from nova_perfvm.policy.schema import form_problems
from nova_perfvm.policy.source import Source

SCHEMA_VERSION: Final = "1.0"
# With fewer no interval can be told.
LEAST_REPEATS: Final = 5

_NAME: Final = {
    "pattern": r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z",
    "description": "a name of letters, digits, '.', - and _, at most 63 long",
}
_WORD: Final = says(minLength=1, description="text")
Words = Annotated[
    tuple[Annotated[str, _WORD], ...], says(description="a list of words")
]
# A text that begins with - would be an option of ssh.
_DESTINATION: Final = says(
    pattern=r"^[^-\s][^\s]*\Z", description="where ssh goes, such as root@192.0.2.7"
)


class ScenarioError(FileMistakesError):
    """A scenario that cannot be used; ``problems`` holds every mistake in it."""

    title = "{source}: {count} in the scenario"


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

    name: str = field(metadata=NAME)
    kind: Literal["host", "guest"]
    ssh: Annotated[str, _DESTINATION] | None = None
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
    tuple[Annotated[str, says(description="the name of a target")], ...],
    says(minItems=1, uniqueItems=True, description="a list of targets, each once"),
]


@dataclass(frozen=True, slots=True)
class TargetGroup:
    """Targets that measure at the same time."""

    name: str = field(metadata=NAME)
    targets: Members


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Every key of a scenario file.

    :ivar repeats: rounds that are measured
    :ivar warm_up: rounds before them whose figures are dropped
    :ivar grace_s: how much longer than planned a run may take
    :ivar prepare_s: how long fio may write its files at first
    """

    schema_version: Annotated[
        Literal["1.0"], says(description=f'"{SCHEMA_VERSION}", in quotes')
    ]
    targets: Annotated[
        tuple[Target, ...],
        Form.BY_NAME,
        says(minProperties=1, propertyNames=_NAME),
        says(description="a mapping of names to targets"),
    ]
    groups: Annotated[
        tuple[TargetGroup, ...],
        Form.BY_NAME,
        says(minProperties=1, propertyNames=_NAME),
        says(description="a mapping of names to groups of targets"),
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
        document: dict[str, Any] = written(Scenario, self)
        tools = {
            one.name: written(type(tool), tool)
            for one in fields(Tools)
            if (tool := getattr(self.tools, one.name)) is not None
        }
        groups = {group.name: list(group.targets) for group in self.groups}
        return document | {"groups": groups, "tools": tools}

    def steps(self) -> Iterator[Step]:
        """Yield what is run, in this order.

        Whatever changes in the course of time is to hit all groups alike: each of
        them is measured in each round, and who comes first is drawn by lot.  It is
        the same lot whenever a scenario is gone on with.
        """
        runs = {group.name: self._runs(group) for group in self.groups}
        each = len(next(iter(runs.values())))
        for number in range(1 - self.warm_up, self.repeats + 1):
            for index in range(each):
                order = list(runs)
                random.Random(f"{number} {index}").shuffle(order)  # noqa: S311
                for name in order:
                    yield Step(number, name, runs[name][index])

    def _runs(self, group: TargetGroup) -> list[dict[str, Run]]:
        places = [Place(who, number) for number, who in enumerate(group.targets)]
        of_each = [
            [run for tool in self.tools.used() for run in tool.runs(place)]
            for place in places
        ]
        return [
            dict(zip(group.targets, runs, strict=True))
            for runs in zip(*of_each, strict=True)
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
        """What it is known by when a run goes on."""
        return f"{self.round}/{self.group}/{self.run.name}/{self.run.threads}"

    @property
    def title(self) -> str:
        """What it is called while it runs."""
        what = "warm-up" if self.round < 1 else f"round {self.round}"
        return f"{what}, {self.group}: {self.run.name}, {self.run.threads} thread(s)"


SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "scenario.yaml",
    **schema_of(Scenario),
}
# A group is written as the list of its targets.
SCHEMA["properties"]["groups"]["additionalProperties"] = schema_of(Members)


def load(path: str | Path) -> Scenario:
    """Read a scenario file.

    :raises ScenarioError: with every mistake of the file, or that it cannot be read
    """
    try:
        text = textfile.read(path)
    except UnreadableFileError as exc:
        raise ScenarioError(str(path), [exc.as_problem()]) from None
    return parse(text, str(path))


def parse(text: str, source: str = "scenario") -> Scenario:
    """Return the scenario that a YAML text declares.

    :param source: the text's name in messages
    :raises ScenarioError: with every mistake of the text, each with its line
    """
    # First, as what machines wrote may be megabytes, which YAML takes minutes for.
    other = filekinds.other(text, filekinds.SCENARIO)
    if other:
        raise ScenarioError.of_another_kind(source, other)
    parsed = Source(text)
    if parsed.problems:
        raise ScenarioError(source, parsed.problems)
    found = form_problems(SCHEMA, parsed.data)
    faulty = {problem.path for problem in found}
    if isinstance(parsed.data, dict):
        found += [p for p in _mistakes(parsed.data) if p.path not in faulty]
    if found:
        raise ScenarioError(source, parsed.in_order(dict.fromkeys(found)))
    return from_document(parsed.data)


def from_document(document: dict[str, Any]) -> Scenario:
    """Return the scenario of a document that fulfils the schema."""
    groups = {name: {"targets": of} for name, of in document["groups"].items()}
    scenario: Scenario = read(Scenario, document | {"groups": groups})
    return scenario


def _mistakes(document: dict[str, Any]) -> Iterator[Problem]:
    """Yield mistakes of meaning, in what has the right form."""
    targets, groups, tools = (
        found if isinstance(found := document.get(key), dict) else {}
        for key in ("targets", "groups", "tools")
    )
    if document.get("tools") == {}:
        yield Problem(("tools",), f"no tool: name one of {', '.join(_TOOLS)}")
    members = {
        name: [who for who in of_group if isinstance(who, str)]
        for name, of_group in groups.items()
        if isinstance(of_group, list)
    }
    of_iperf = tools.get("iperf3")
    server = of_iperf.get("server") if isinstance(of_iperf, dict) else None
    for name, of_group in members.items():
        for number, who in enumerate(of_group):
            place = ("groups", name, str(number))
            if who not in targets:
                known = ", ".join(map(str, targets)) or "none"
                yield Problem(place, f"no target {who!r}; there are: {known}")
            elif who == server:
                yield Problem(
                    place, f"{who} serves iperf3: it cannot measure, too; remove it"
                )
    yield from _same_size(members)
    if isinstance(server, str) and server not in targets:
        place = ("tools", "iperf3", "server")
        known = ", ".join(map(str, targets)) or "none"
        yield Problem(place, f"no target {server!r}; there are: {known}")
    busy = {who for of_group in members.values() for who in of_group}
    for who in targets:
        if groups and who not in busy and who != server:
            yield Problem(
                ("targets", who), "in no group: add it to one, or leave it out"
            )
    yield from _ports(of_iperf, members)


def _same_size(members: dict[str, list[str]]) -> Iterator[Problem]:
    for (name, one), (other, two) in itertools.combinations(members.items(), 2):
        both = [who for who in two if who in one]
        if len(one) == len(two) and both:
            yield Problem(
                ("groups", other),
                f"{', '.join(both)} is in {name}, too, which has as many targets: the "
                "figures could not be told apart; remove one",
            )


def _ports(of_iperf: Any, members: dict[str, list[str]]) -> Iterator[Problem]:
    try:
        tool: iperf3.IPerf3 = read(iperf3.IPerf3, of_iperf)
        last = tool.last_port(max(map(len, members.values())))
    except (AttributeError, TypeError, ValueError):
        # Its form is a mistake of its own, or there is none.
        return
    if last > _LAST_PORT:
        yield Problem(
            ("tools", "iperf3", "port"),
            f"the targets at once need ports up to {last}: begin lower",
        )


_LAST_PORT: Final = 65535
_TOOLS: Final = tuple(one.name for one in fields(Tools))
