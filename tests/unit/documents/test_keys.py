# SPDX-License-Identifier: Apache-2.0
"""One field makes a key: in what is read, in what is written, in what is wrong."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import testtools

from nova_perfvm.documents.keys import (
    EACH_ONCE,
    LEFT_OUT,
    NAME,
    Form,
    Time,
    count,
    matching,
    read_value,
    some,
    written,
)
from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.policy import HostShape


class Door(NamedTuple):
    width: float
    words: str = ""


@dataclasses.dataclass(frozen=True)
class Room:
    name: Annotated[str, matching("[a-z]+", "a word")] = dataclasses.field(
        metadata=NAME
    )
    places: Annotated[int, count(1, 9, "places")]
    kind: Literal["a", "b"] | None = None
    traits: Annotated[tuple[str, ...], some("a list of traits"), EACH_ONCE] = ("X",)
    open: bool = dataclasses.field(default=False, metadata=LEFT_OUT)

    def mistakes(self):
        if self.open and self.kind is None:
            yield Mistake(("open",), "needs a kind")


@dataclasses.dataclass(frozen=True)
class House:
    rooms: Annotated[tuple[Room, ...], Form.BY_NAME]
    size: Annotated[tuple[HostShape, ...], Form.ONE_OR_MORE] = dataclasses.field(
        default=(), metadata={"key": "sizes"}
    )
    built: Time = "2026-01-31T12:00:00+00:00"
    cpus: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()
    pins: Mapping[int, int] = dataclasses.field(default_factory=dict)
    doors: tuple[Door, ...] = ()
    rest: Mapping[str, Any] = dataclasses.field(default_factory=dict)


DOCUMENT = {
    "rooms": {
        "hall": {"places": 2, "kind": "b", "traits": ["Y"], "open": True},
        "shed": {"places": 1},
    },
    "sizes": "2x20",
    "cpus": "0-2",
    "names": ["a", "b"],
    "pins": {"0": 4},
    "doors": [{"width": 1.5}],
    "rest": {"any": [1]},
}
HOUSE = House(
    (Room("hall", 2, "b", ("Y",), open=True), Room("shed", 1)),
    (HostShape(2, 20),),
    cpus=frozenset({0, 1, 2}),
    names=frozenset({"a", "b"}),
    pins={0: 4},
    doors=(Door(1.5),),
    rest={"any": [1]},
)


class KeysTest(testtools.TestCase):
    def test_read(self):
        self.assertEqual((HOUSE, []), read_value(House, DOCUMENT))
        several = DOCUMENT | {"sizes": ["2x20", "4x10"]}
        self.assertEqual(2, len(read_value(House, several)[0].size))

    def test_written(self):
        for whole in (True, False):
            document = json.loads(json.dumps(written(HOUSE, whole=whole)))
            self.assertEqual((HOUSE, []), read_value(House, document))
        self.assertEqual(DOCUMENT, document)
        shed = {"places": 1, "kind": None, "traits": ["X"]}
        self.assertEqual(shed, written(HOUSE)["rooms"]["shed"])

    def test_mistakes(self):
        for changes, expected in (
            ({"rooms": []}, "rooms: found [], expected a mapping"),
            ({"sizes": "2y"}, "sizes: '2y' is not a host shape: expected NUMA nodes"),
            ({"built": "x"}, "built: found 'x', expected a time with its offset"),
            ({"cpus": "3-1"}, "cpus: '3-1' in CPU list '3-1': expected the lower"),
            ({"cpus": [1]}, "cpus: found [1], expected a list of CPUs such as"),
            ({"names": [[]]}, "names.0: found [], expected text"),
            ({"sizes": "2*20"}, "sizes: '2*20' is not a host shape"),
            ({"sizes": ["2x20", "2*20"]}, "sizes.1: '2*20' is not a host shape"),
            ({"pins": {"x": 1}}, "pins.x: found 'x', expected a whole number"),
            ({"pins": {"9" * 5000: 1}}, "expected a whole number"),
            ({"pins": {"1": 1.0}}, "pins.1: found 1.0, expected a whole number"),
            ({"doors": [{}]}, "doors.0.width: missing; expected a number"),
            ({"doors": [{"width": float("inf")}]}, "found inf, expected a number"),
            ({"doors": [1]}, "doors.0: found 1, expected a mapping with the keys"),
            ({"rest": None}, "rest: found null, expected a mapping"),
            ({"siez": 1}, "siez: unknown key; did you mean sizes?"),
            ({"xxx": 1}, "xxx: unknown key; expected a mapping with the keys rooms"),
        ):
            self.check(changes, expected)

    def check(self, changes, expected):
        found, mistakes = read_value(House, DOCUMENT | changes)
        self.assertIsNone(found)
        self.assertEqual(1, len(mistakes), mistakes)
        self.assertIn(expected, str(mistakes[0]))

    def test_mistakes_in_rooms(self):
        for room, expected in (
            ({"places": 10}, "places: found 10, expected a whole number of places"),
            ({"kind": ["a"]}, "kind: found ['a'], expected one of 'a', 'b'"),
            ({"traits": []}, "traits: found [], expected a list of traits"),
            ({"traits": ["a", "a"]}, "traits: found ['a', 'a'], expected each value"),
            ({"open": None}, "open: found null, expected true or false"),
            ({"open": True}, "open: needs a kind"),
            ({"name": "x"}, "name: unknown key"),
        ):
            rooms = {"hall": {"places": 1} | room}
            self.check({"rooms": rooms}, f"rooms.hall.{expected}")
        rooms = {"A": {"places": 1}}
        self.check({"rooms": rooms}, "rooms.A: found 'A', expected a word")

    def test_all_at_once(self):
        rooms = {"a": {"places": 0, "open": 1}, "b": {}, "c": {"places": 1}}
        rooms["c"]["open"] = True
        _, mistakes = read_value(House, {"rooms": rooms, "cpus": "x", "sizes": "x"})
        self.assertEqual(
            ["a.places", "a.open", "b.places", "c.open"],
            [".".join(m.path[1:]) for m in mistakes[:4]],
        )
        self.assertEqual(["cpus", "sizes"], [".".join(m.path) for m in mistakes[4:]])
