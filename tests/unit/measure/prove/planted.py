# SPDX-License-Identifier: Apache-2.0
"""All faults that are planted, by their names."""

from tests.unit.measure.prove import (
    faults,
    faults_devices,
    faults_domain,
    faults_load,
    faults_state,
)

BY_NAME = {
    fault.name: fault
    for module in (faults, faults_domain, faults_devices, faults_load, faults_state)
    for fault in module.FAULTS
}
