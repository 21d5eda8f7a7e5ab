# SPDX-License-Identifier: Apache-2.0
"""A first look at a cloud: what is there, what it breaks, what could be."""

from nova_perfvm.diagnose.survey.hosts import HostUse, ShapeGroup
from nova_perfvm.diagnose.survey.propose import Proposal, ProposalError, propose
from nova_perfvm.diagnose.survey.sizes import PinnedSize, pinned_sizes
from nova_perfvm.diagnose.survey.steps import AdoptionStep
from nova_perfvm.diagnose.survey.survey import (
    Gap,
    Recovery,
    SlotSums,
    Survey,
    survey,
)

__all__ = [
    "AdoptionStep",
    "Gap",
    "HostUse",
    "PinnedSize",
    "Proposal",
    "ProposalError",
    "Recovery",
    "ShapeGroup",
    "SlotSums",
    "Survey",
    "pinned_sizes",
    "propose",
    "survey",
]
