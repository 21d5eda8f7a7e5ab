# SPDX-License-Identifier: Apache-2.0
"""The rules: whether a host may take a request, and the reason if it may not.

Pure functions of policy and facts.  Each file in ``request`` and ``host`` states one
rule: its check and, for each reason to refuse, the code, message, remedy and audit
code.  A new file there is a new rule; see :mod:`nova_perfvm.rules.rule`.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from nova_perfvm.facts import Decision, HostFacts, Reason, RequestFacts
from nova_perfvm.policy import Policy
from nova_perfvm.rules import host as host_rules
from nova_perfvm.rules import request as request_rules
from nova_perfvm.rules.cells import describe_cells
from nova_perfvm.rules.classes import is_former_size, resolve_class
from nova_perfvm.rules.host import unreported
from nova_perfvm.rules.rule import (
    KINDS,
    STATES,
    HostCase,
    HostCheck,
    HostRule,
    Kind,
    Refusal,
    RequestCase,
    RequestRule,
    State,
    rules_of,
)

__all__ = [
    "REASON_CODES",
    "REFUSALS",
    "check_host",
    "check_image",
    "check_placed",
    "check_request",
    "decide",
    "describe",
    "describe_cells",
    "is_former_size",
    "resolve_class",
    "vms_by_pins",
]

_Chains = Mapping[State, Mapping[Kind, tuple[HostCheck, ...]]]

_REQUEST_RULES: Final = rules_of(request_rules, RequestRule)
_HOST_RULES: Final = rules_of(host_rules, HostRule)


def _chains(rules: Iterable[HostRule]) -> _Chains:
    """Group the checks by state of host and kind of VM."""
    rules = tuple(rules)
    return {
        state: {
            kind: tuple(
                rule.check for rule in rules if state in rule.hosts and kind in rule.vms
            )
            for kind in KINDS
        }
        for state in STATES
    }


_HOST_CHECKS: Final = _chains(_HOST_RULES)
# Checks for servers that already run on the host: those with codes of the audit.  Most
# others count VMs or free CPUs, so they would find the server itself in its way.
_PLACE_CHECKS: Final = _chains(
    rule for rule in _HOST_RULES if all(r.audit for r in rule.refusals)
)

# Every rule's refusals, by code.
REFUSALS: Final[Mapping[str, Refusal]] = {
    refusal.code: refusal
    for refusals in (
        *(rule.refusals for rule in _REQUEST_RULES),
        *(rule.refusals for rule in _HOST_RULES),
    )
    for refusal in refusals
}
REASON_CODES: Final = frozenset(REFUSALS)


def decide(policy: Policy, request: RequestFacts, host: HostFacts) -> Decision:
    """Return whether a host may take a request, and the reasons if it may not.

    A request that breaks rules of its class is refused on every host, with all its
    reasons; the rules about the host run only for a correct request.
    """
    reasons = check_request(policy, request) or check_host(policy, request, host)
    return Decision(not reasons, reasons)


def describe(reason: Reason) -> str:
    """Return the message of a reason, with its figures filled in."""
    refusal = REFUSALS[reason.code]
    if refusal.words is None:
        return refusal.meaning.replace("``", "")
    return refusal.words(reason.data)


def check_request(policy: Policy, request: RequestFacts) -> tuple[Reason, ...]:
    """Return the reasons to refuse a request by the rules of its class.

    A request whose flavor names no declared class can break only the rules that
    concern every request, such as requiring nova_perfvm's traits without a class.
    """
    return _of_class(policy, request, _REQUEST_RULES)


def check_image(
    policy: Policy, request: RequestFacts, labels: frozenset[str]
) -> tuple[Reason, ...]:
    """Return the reasons not to rebuild a server with a new image.

    A rebuild keeps the flavor, the NUMA topology (nova-api ensures it) and the host,
    so only rules with ``image=True`` apply: on managed hosts all of them, on other
    hosts those that also hold for flavors of no class, as the server's next move asks
    Placement for the new image's traits.

    :param labels: classes that the aggregates of the server's host name
    """
    rules = [
        rule
        for rule in _REQUEST_RULES
        if rule.image and (not rule.claimed or policy.manages(labels))
    ]
    return _of_class(policy, request, rules)


def _of_class(
    policy: Policy, request: RequestFacts, rules: Iterable[RequestRule]
) -> tuple[Reason, ...]:
    vm_class = resolve_class(policy, request)
    claims = request.class_name is not None and vm_class is not None
    case = RequestCase(policy, vm_class, request)
    return tuple(
        reason
        for rule in rules
        if claims or not rule.claimed
        for reason in rule.check(case)
    )


def check_host(
    policy: Policy, request: RequestFacts, host: HostFacts
) -> tuple[Reason, ...]:
    """Return the first reason for which a host may not take a request, or ().

    Call it for requests that pass :func:`check_request`.  Rules after the first
    refusal do not run.
    """
    return _first(policy, request, host, _HOST_CHECKS)


def vms_by_pins(policy: Policy, request: RequestFacts, host: HostFacts) -> int | None:
    """Return the lowest number of VMs that own a host's pinned CPUs, or None.

    None as by ``unreported.vms_by_pins``, and for unpinned VMs and unmanaged hosts.
    Else look up the host's ``unpinned``, and call :func:`check_host` again.
    """
    vm_class = resolve_class(policy, request)
    if vm_class is None or not vm_class.pinned or not policy.manages(host.labels):
        return None
    return unreported.vms_by_pins(policy, vm_class.of_size(request.vcpus), host)


def check_placed(
    policy: Policy, request: RequestFacts, host: HostFacts
) -> tuple[Reason, ...]:
    """Return the first reason for which a server should not run on its host, or ().

    Only rules with audit codes run: rules that count VMs would count the server itself.
    """
    return _first(policy, request, host, _PLACE_CHECKS)


def _first(
    policy: Policy, request: RequestFacts, host: HostFacts, chains: _Chains
) -> tuple[Reason, ...]:
    """Return the first refusal of the checks for this state of host and kind of VM."""
    vm_class = resolve_class(policy, request)
    if host.labels:
        kinds = chains["labelled"]
    else:
        kinds = chains["managed" if policy.manages(host.labels) else "unmanaged"]
    if vm_class is None:
        checks = kinds["classless"]
    else:
        checks = kinds["pinned" if vm_class.pinned else "shared"]
        vm_class = vm_class.of_size(request.vcpus)
    case = HostCase(policy, vm_class, request, host)
    for check in checks:
        reason = check(case)
        if reason is not None:
            return (reason,)
    return ()
