# SPDX-License-Identifier: Apache-2.0
"""The file of a run: measurements, and all that says how they were made.

The file is one that :mod:`nova_perfvm.measure.samples` reads, with the key ``run``
beside the measurements, and is written anew after each step.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from nova_perfvm.documents import textfile
from nova_perfvm.documents.document import KINDS, SCHEMA_VERSION
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure import samples
from nova_perfvm.measure.bench.scenario import Scenario, Step
from nova_perfvm.measure.samples import Measurement


class RecordError(PerfVMError):
    """A file of a run that cannot be begun, gone on with, or read."""


class Record:
    """The state of a run after the last finished step."""

    def __init__(self, path: str, scenario: Scenario) -> None:
        """Begin a record; nothing is written yet."""
        self.path = path
        self._document: dict[str, Any] = {
            "kind": "measurements",
            "schema_version": SCHEMA_VERSION,
            "run": {
                "scenario": scenario.as_document(),
                "seed": secrets.randbits(32),
                "working_set_mb": 0,
                "sessions": [],
                "steps": [],
                "failures": [],
            },
            "measurements": [],
        }

    @classmethod
    def begin(cls, path: str, scenario: Scenario) -> Self:
        """Return the record of a new run.

        :raises RecordError: when the file exists, which may hold hours of work
        """
        if Path(path).exists():
            raise RecordError(
                f"{path} is there already: go on with it by --resume, or name another"
            )
        return cls(path, scenario)

    @classmethod
    def resume(cls, path: str, scenario: Scenario) -> Self:
        """Return the record of a run to resume; of a new run if the file is missing.

        :raises RecordError: when the file is no record, or has another scenario
        """
        record = cls(path, scenario)
        if not Path(path).exists():
            return record
        document = json_of(path)
        run = document.get("run")
        if not isinstance(run, dict) or not isinstance(run.get("scenario"), dict):
            raise RecordError(f"{path} is not from bench run: name another file")
        begun, wanted = run["scenario"], record.run["scenario"]
        other = [key for key in wanted | begun if wanted.get(key) != begun.get(key)]
        if other:
            raise RecordError(
                f"{path} was begun with another scenario ({', '.join(other)} differ): "
                "go on with that one, or name another file"
            )
        # Fail now for measurements that ``bench compare`` could not read later.
        if document.get("measurements"):
            samples.loads(json.dumps(document), path)
        document.setdefault("measurements", [])
        document["run"] = record.run | run | {"failures": []}
        record._document = document
        return record

    @property
    def run(self) -> dict[str, Any]:
        """Return what the file has beside the measurements, to be added to.

        ``seed`` is what the order of the steps is drawn by, ``working_set_mb`` what
        tools of memory work on, 0 until that is known; ``failures`` has where and why.
        """
        found: dict[str, Any] = self._document["run"]
        return found

    @property
    def done(self) -> frozenset[str]:
        """Return the keys of the steps that are done."""
        return frozenset(step["key"] for step in self.run["steps"])

    def session(self, started_at: str, targets: Mapping[str, Any]) -> None:
        """Record the state of the targets when the run begins, or goes on."""
        found = {"started_at": started_at, "targets": dict(targets)}
        self.run["sessions"].append(found)

    def fail(self, where: str, who: str, reason: str, stderr: str = "") -> None:
        """Record that a step, or its preparation, failed on a target."""
        found = {"where": where, "who": who, "reason": reason, "stderr": stderr}
        self.run["failures"].append(found)

    def step(
        self, step: Step, measured: Iterable[Measurement], how: Mapping[str, Any]
    ) -> None:
        """Record a finished step.

        :param how: further keys of the step, such as its start and duration
        """
        who = list(step.runs)
        found = {"key": step.key, "warm_up": step.round < 1, "targets": who}
        self.run["steps"].append(found | dict(how))
        self._document["measurements"] += [asdict(one) for one in measured]

    def save(self) -> None:
        """Write the file whole or not at all; only its owner may read the file.

        :raises PerfVMError: when the file cannot be written
        """
        text = json.dumps(self._document, indent=1, allow_nan=False) + "\n"
        # The files collected on the targets are in the record.
        textfile.replace(self.path, text, private=True)


@contextlib.contextmanager
def reading_run(source: str) -> Iterator[None]:
    """Turn errors from reading the record of a run into a RecordError.

    :param source: name of the file in errors
    :raises RecordError: when a key is missing, or its value has another type or form
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        reason = f"run: not what bench run writes ({type(exc).__name__}: {exc})"
        raise RecordError(f"{source}: {reason}") from exc


def json_of(path: str) -> dict[str, Any]:
    """Return the mapping in a file of JSON.

    :raises RecordError: when the file is not JSON, or has no mapping
    """
    try:
        document = json.loads(textfile.read(path, KINDS["measurements"].most_bytes))
    except (ValueError, RecursionError) as exc:
        raise RecordError(f"{path}: not JSON: {exc}") from None
    if not isinstance(document, dict):
        raise RecordError(f"{path}: expected a mapping")
    return document
