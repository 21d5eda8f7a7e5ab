# SPDX-License-Identifier: Apache-2.0
"""A proposed policy as a policy file, whose comments give the reasons."""

from __future__ import annotations

from dataclasses import replace

from nova_perfvm.diagnose.survey import Proposal
from nova_perfvm.documents.yaml_lines import dump_yaml
from nova_perfvm.generate.hosts import rendering
from nova_perfvm.policy import TYPE_TO_CHOOSE, Disk, Policy, loader
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
    text = f"{why}{dump_yaml(_with_types_to_choose(proposal.policy).as_document())}"
    loader.parse(text.replace(TYPE_TO_CHOOSE, "null"), "the proposed policy")
    return text


def _with_types_to_choose(policy: Policy) -> Policy:
    """Return the policy with a type that readers refuse wherever none is known.

    Cinder's default type would rarely be that of fast volumes.
    """
    chosen = Disk("volume", TYPE_TO_CHOOSE)
    classes = (
        replace(c, disk=chosen) if c.pinned and c.disk == Disk("volume") else c
        for c in policy.classes
    )
    return replace(policy, classes=tuple(classes))
