# SPDX-License-Identifier: Apache-2.0
"""Settle what a guest cannot tell by the checks of its host."""

from __future__ import annotations

from dataclasses import replace

from nova_perfvm.findings import CheckFindings, Finding, Level
from nova_perfvm.measure.checks.report import CheckReport
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.prove.promise import EVIDENCE


def settled(guest: CheckReport, host: CheckReport, domain: Domain) -> CheckReport:
    """Return a guest's report with what only its host can tell.

    :param domain: which of the host's VMs the guest is
    """
    results = tuple(_settled(result, host, domain) for result in guest.results)
    return replace(guest, results=results)


def _settled(result: CheckFindings, host: CheckReport, domain: Domain) -> CheckFindings:
    rule = EVIDENCE[result.code].settled
    if rule is None:
        return result
    cause, code = rule
    proof = _proof(host, code, domain)
    if proof is None:
        return result
    return result._replace(
        findings=tuple(
            _joined(one, proof) if one.cause == cause else one
            for one in result.findings
        )
    )


def _proof(host: CheckReport, code: str, domain: Domain) -> Finding | None:
    """Return what a check of the host found of a VM, if it passed and all of it did."""
    found = [
        one
        for result in host.results
        for one in result.findings
        if (one.code, one.subject) == (code, domain.name)
    ]
    passed = found and all(one.level is Level.OK for one in found)
    return found[0] if passed else None


def _joined(skip: Finding, proof: Finding) -> Finding:
    return skip._replace(
        level=Level.OK,
        expected=proof.expected,
        observed=f"{skip.observed}; {proof.code}: {proof.observed}",
        source=f"{skip.source}; on the host {proof.source}",
        remedy="",
        cause="",
    )
