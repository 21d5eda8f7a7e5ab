# SPDX-License-Identifier: Apache-2.0
"""Prometheus' text format, for node_exporter's textfile collector."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping

# {label: value}, and the sample.
Sample = tuple[Mapping[str, str], int]


def gauge(name: str, meaning: str, samples: Iterable[Sample]) -> str:
    """Return a metric with its samples, always in the same order."""
    lines = [f"# HELP {name} {meaning}", f"# TYPE {name} gauge"]
    for labels, value in samples:
        pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{name}{{{pairs}}} {value}" if pairs else f"{name} {value}")
    return "".join(f"{line}\n" for line in lines)


def seconds(taken_at: str) -> int:
    """Return a time of ISO 8601 in seconds since the epoch."""
    return int(dt.datetime.fromisoformat(taken_at).timestamp())


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
