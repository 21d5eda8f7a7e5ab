# SPDX-License-Identifier: Apache-2.0
"""The rules: whether a request may come to a host, and if not, why.

Pure functions of policy and facts.  Each rule is stated once, in a file of its own:
its check, and for each of its reasons the code, the words, what the audit makes of
a server that runs against it, and what can be done to the host.  A file that is put
into ``request`` or ``host`` is a rule; see :mod:`nova_perfvm.rules.rule`.
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
_PASS: Final[tuple[Reason, ...]] = ()

_REQUEST_RULES: Final = rules_of(request_rules, RequestRule)
_HOST_RULES: Final = rules_of(host_rules, HostRule)


def _chains(rules: Iterable[HostRule]) -> _Chains:
    """Group the checks by state of host and kind of VM, so that only those run."""
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
# Of a server that is there already, only these say something: the others would
# find the server itself in its way.
_PLACE_CHECKS: Final = _chains(
    rule for rule in _HOST_RULES if all(r.audit for r in rule.refusals)
)

# Every reason for which a rule refuses, by its code.
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
    """Return whether a host may take a request, and why not.

    A request that is not of the class it claims is refused everywhere, with
    all that is wrong with it; only then is the host looked at.
    """
    reasons = check_request(policy, request) or check_host(policy, request, host)
    return Decision(not reasons, reasons)


def describe(reason: Reason) -> str:
    """Return one sentence for a reason, with its figures."""
    refusal = REFUSALS[reason.code]
    if refusal.words is None:
        return refusal.meaning.replace("``", "")
    return refusal.words(reason.data)


def check_request(policy: Policy, request: RequestFacts) -> tuple[Reason, ...]:
    """List all that keeps a request from being of the class it claims.

    A request that claims none is right by definition, as the default class takes
    any size, unless it names what is the project's own.
    """
    return _of_class(policy, request, _REQUEST_RULES)


def check_image(
    policy: Policy, request: RequestFacts, labels: frozenset[str]
) -> tuple[Reason, ...]:
    """List what a new image takes from a server that is rebuilt with it.

    A rebuild keeps flavor, NUMA topology (nova-api sees to that) and host, so
    only what an image alone decides is judged: multiqueue, which a flavor without a
    class does not promise, and traits, for which the next move would ask Placement.

    :param labels: of the server's host
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
    """List why a host may not take a request; empty when it may.

    The request is taken to be of its class (:func:`check_request`).  The first
    reason is the one to act on, and the rules behind it are not asked.
    """
    return _first(policy, request, host, _HOST_CHECKS)


def vms_by_pins(policy: Policy, request: RequestFacts, host: HostFacts) -> int | None:
    """Count the VMs that a host's pins are, where it matters who else is there.

    See :func:`nova_perfvm.rules.host.unreported.vms_by_pins`.  Where it is not
    None, ask :func:`check_host` again with the host's ``unpinned``.
    """
    vm_class = resolve_class(policy, request)
    if vm_class is None or not vm_class.pinned or not policy.manages(host.labels):
        return None
    return unreported.vms_by_pins(policy, vm_class.of_size(request.vcpus), host)


def check_placed(
    policy: Policy, request: RequestFacts, host: HostFacts
) -> tuple[Reason, ...]:
    """List why a server that is on a host should not be there, whoever else is.

    What servers do to each other is not looked at: the server itself would count.
    """
    return _first(policy, request, host, _PLACE_CHECKS)


def _first(
    policy: Policy, request: RequestFacts, host: HostFacts, chains: _Chains
) -> tuple[Reason, ...]:
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
    return _PASS
