# SPDX-License-Identifier: Apache-2.0
"""One field makes a key: in the schema, in what is read, in what is written."""

import dataclasses
from typing import Annotated, Literal

import jsonschema
import testtools

from nova_perfvm.policy import HostShape, loader
from nova_perfvm.policy.keys import (
    LEFT_OUT,
    NAME,
    Form,
    count,
    read,
    says,
    schema_of,
    written,
)

Trait = Annotated[str, says(pattern="^[A-Z0-9_]+$", description="a trait")]


@dataclasses.dataclass(frozen=True)
class Room:
    name: str = dataclasses.field(metadata=NAME)
    places: Annotated[int, count(1, 9, "places")]
    kind: Literal["a", "b"] | None = None
    traits: tuple[Trait, ...] = ()
    open: bool = dataclasses.field(default=False, metadata=LEFT_OUT)


@dataclasses.dataclass(frozen=True)
class House:
    rooms: Annotated[tuple[Room, ...], Form.BY_NAME]
    size: Annotated[tuple[HostShape, ...], Form.ONE_OR_MORE] = dataclasses.field(
        default=(), metadata={"key": "sizes"}
    )


DOCUMENT = {
    "rooms": {
        "hall": {"places": 2.0, "kind": "b", "traits": ["X"], "open": True},
        "shed": {"places": 1},
    },
    "sizes": "2x20",
}
HOUSE = House(
    (Room("hall", 2, "b", ("X",), open=True), Room("shed", 1)), (HostShape(2, 20),)
)


class KeysTest(testtools.TestCase):
    def faults(self, **keys):
        document = DOCUMENT | {"rooms": {"hall": {"places": 1} | keys}}
        validator = jsonschema.Draft202012Validator(schema_of(House))
        return [error.validator for error in validator.iter_errors(document)]

    def test_schema(self):
        self.assertEqual([], self.faults(kind=None, traits=["A_1"]))
        for fault, keys in (
            ("maximum", {"places": 10}),
            ("enum", {"kind": "c"}),
            ("pattern", {"traits": ["a"]}),
            ("type", {"open": None}),
            ("additionalProperties", {"name": "x"}),
        ):
            self.assertEqual([fault], self.faults(**keys))
        room = schema_of(Room)
        self.assertEqual(["places"], room["required"])
        self.assertEqual(
            "a mapping with the keys places, kind, traits, open", room["description"]
        )

    def test_read(self):
        found = read(House, DOCUMENT)
        self.assertEqual(HOUSE, found)
        self.assertIsInstance(found.rooms[0].places, int)
        several = DOCUMENT | {"sizes": ["2x20", "4x10"]}
        self.assertEqual(2, len(read(House, several).size))

    def test_written(self):
        document = written(House, HOUSE)
        self.assertEqual(
            {
                "rooms": {
                    "hall": {"places": 2, "kind": "b", "traits": ["X"], "open": True},
                    "shed": {"places": 1, "kind": None, "traits": []},
                },
                "sizes": "2x20",
            },
            document,
        )
        self.assertEqual(HOUSE, read(House, document))

    def test_what_a_policy_shows_fulfils_its_schema(self):
        jsonschema.validate(loader.load().as_document(), loader.SCHEMA)
