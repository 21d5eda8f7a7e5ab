# SPDX-License-Identifier: Apache-2.0
"""Faults and harmless variations by somebody who has not read the checks.

Each row is {name: edit of a faultless case}.  A fault that is in a run makes the proof
false, or leaves it without a ground; a variation does not touch it.
"""

from tests.unit.measure.prove import strangers_faults_devices as devices
from tests.unit.measure.prove import strangers_faults_machine as machine
from tests.unit.measure.prove import strangers_faults_run as run
from tests.unit.measure.prove import strangers_variations_domain as other_domains
from tests.unit.measure.prove import strangers_variations_machine as other_machines
from tests.unit.measure.prove import strangers_variations_run as other_runs

FAULTS = run.FAULTS | machine.FAULTS | devices.FAULTS
VARIATIONS = (
    other_machines.VARIATIONS | other_domains.VARIATIONS | other_runs.VARIATIONS
)
