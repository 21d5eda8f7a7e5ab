# SPDX-License-Identifier: Apache-2.0
"""A proposed policy as a policy file, whose comments give the reasons."""

from __future__ import annotations

from nova_perfvm.diagnose.survey import Proposal
from nova_perfvm.generate.formats import document
from nova_perfvm.generate.hosts import rendering
from nova_perfvm.policy import loader
from nova_perfvm.printable import one_line, printable


def as_file(proposal: Proposal) -> str:
    """Return the policy file.

    :raises DocumentError: when the policy is not valid, so that ``policy check`` would
        refuse the file
    """
    lines = [
        "Proposed by nova-perfvm survey from what the cloud has. Why:",
        *(f"{key}: {why}" for key, why in proposal.why.items()),
    ]
    if proposal.left_out:
        lines += ["Not in it:", *proposal.left_out]
    why = "".join(rendering.comment(printable(one_line(line)), "  ") for line in lines)
    text = f"{why}{document.policy_yaml(proposal.policy)}"
    loader.parse(text, "the proposed policy")
    return text
