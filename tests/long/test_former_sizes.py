# SPDX-License-Identifier: Apache-2.0
"""Classes whose size changed, under the schemes that tests/functional leaves out."""

from tests.functional import elastic
from tests.functional.test_former_sizes import SchemeCase


class TestSlots(SchemeCase, elastic.ElasticTest):
    PLACEMENT = "slots"


class TestUnits(SchemeCase, elastic.ElasticTest):
    PLACEMENT = "units"
    MODE = "elastic"
    ENROLL = ()
