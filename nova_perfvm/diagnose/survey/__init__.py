# SPDX-License-Identifier: Apache-2.0
"""A first look at a cloud: its hosts and VMs, violations, and possible slots."""

from nova_perfvm.diagnose.survey.propose import Proposal, ProposalError, propose
from nova_perfvm.diagnose.survey.sizes import pinned_sizes
from nova_perfvm.diagnose.survey.survey import Survey, survey

__all__ = [
    "Proposal",
    "ProposalError",
    "Survey",
    "pinned_sizes",
    "propose",
    "survey",
]
