# SPDX-License-Identifier: Apache-2.0
"""The matrix covers schemes, keys and pairs, and its constraints are true."""

import dataclasses
import itertools
import json
import pathlib
import random
import typing

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.policy import VMClass, loader
from nova_perfvm.policy.model import Placement
from tests.directory import DirectoryCase
from tests.matrix import factors
from tests.matrix.factors import FACTORS, NOTHING
from tests.matrix.policies import document


class FactorsTest(DirectoryCase):
    def test_schemes(self):
        self.assertEqual(typing.get_args(Placement), FACTORS["scheme"])

    def test_keys_of_classes(self):
        keys = {field.name for field in dataclasses.fields(VMClass)}
        self.assertEqual(keys, factors.KEYS.keys() | factors.NO_FACTOR.keys())
        self.assertLessEqual(set(factors.KEYS.values()), FACTORS.keys())

    def test_values_of_keys(self):
        hints = typing.get_type_hints(VMClass)
        compared = set()
        for key, factor in factors.KEYS.items():
            # An optional key is a union with None.
            kinds = (hints[key], *typing.get_args(hints[key]))
            for kind in kinds:
                if typing.get_origin(kind) is typing.Literal and factor != "size":
                    left_out = {v for k, v in factors.NO_VALUE if k == key}
                    found = {*FACTORS[factor]} - {NOTHING}
                    self.assertEqual({*typing.get_args(kind)} - left_out, found, key)
                    compared.add(key)
        expected = {
            "cpu_thread_policy",
            "emulator_threads",
            "exclusive",
            "mem_page_size",
            "smt",
        }
        self.assertEqual(expected, compared)

    def test_all_pairs_meet(self):
        self.assert_all_meet(factors.pairs(), itertools.combinations(FACTORS, 2))

    def test_triples_meet(self):
        self.assert_all_meet(factors.triples(), [("scheme", "pci", "operation")])

    def assert_all_meet(self, rows, names):
        """Look that rows have each combination that the constraints allow."""
        names, rng = list(names), random.Random(2)
        met = {each for row in rows for each in factors.tuples(row, names)}
        possible = 0
        for each in names:
            for values in itertools.product(*(FACTORS[name] for name in each)):
                combination = tuple(zip(each, values, strict=True))
                if factors.complete(dict(combination), rng):
                    possible += 1
                    self.assertIn(combination, met)
        self.assertEqual(possible, len(met))
        self.assertEqual([], [r for r in rows if factors.refusals(r._asdict())])

    def test_rows_are_read_as_they_are_written(self):
        for row in factors.sample(7):
            self.assertEqual(row, factors.Row.parse(str(row)))

    def test_policies(self):
        """Those of rows are taken, and refused is what constraints say."""
        for row in (*factors.pairs(), *factors.triples()):
            self.load(row)
        for text, why in factors.CONSTRAINTS.items():
            broken = factors.broken_by(text)
            rows = [
                factors.complete(
                    dict(zip(broken, values, strict=True)), random.Random(3), but=text
                )
                for values in itertools.product(*broken.values())
            ]
            # A constraint without such a row repeats others.
            self.assertTrue(any(rows), text)
            for row in filter(None, rows):
                if why.startswith(factors.REFUSED):
                    self.assertRaises(PerfVMError, self.load, row)

    def load(self, row):
        path = pathlib.Path(self.directory) / "policy"
        path.write_text(json.dumps(document(row)))
        return loader.load(path)
