# SPDX-License-Identifier: Apache-2.0
"""Flavors, images and hosts of real clouds: our verdicts beside nova-scheduler's.

PERFVM_RANDOM_SEED (7) says which are drawn; tests/long has more of them.
PERFVM_DRAWN_CASE=2/13 asks request 13 of world 2 alone.
"""

from tests.drawn import dry_run, model


class TestDryRun(dry_run.DryRunCase):
    def test_the_dry_run_is_the_scheduler(self):
        self.agree()


class TestModel(model.ModelCase):
    def test_the_model_is_silently_wrong_of_none(self):
        self.agree()
