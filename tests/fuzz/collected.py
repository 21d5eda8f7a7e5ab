# SPDX-License-Identifier: Apache-2.0
"""Odd files of what was collected."""

import json

from tests.fuzz import mutations
from tests.unit.measure import collected_file


def odd_file(rng):
    """Return the bytes of a JSON that had mishaps."""
    return mutations.mutate(rng, json.dumps(collected_file.document()))
