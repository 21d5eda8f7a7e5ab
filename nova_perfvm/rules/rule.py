# SPDX-License-Identifier: Apache-2.0
"""The types of a rule: its check and its refusals.

Each file of :mod:`nova_perfvm.rules.request` and :mod:`nova_perfvm.rules.host` declares
one rule in its constant ``RULE``.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from nova_perfvm.facts import HostFacts, Reason, RequestFacts
from nova_perfvm.policy import Policy, VMClass

# The class of a request; a rule that also judges VMs without a class takes None.
Class = TypeVar("Class", bound=VMClass | None)


class RequestCase(NamedTuple, Generic[Class]):
    """The arguments of a rule about a request alone."""

    policy: Policy
    vm_class: Class
    request: RequestFacts


class HostCase(NamedTuple, Generic[Class]):
    """The arguments of a rule about one host.

    :ivar vm_class: the request's class; if pinned, reduced to the request's vCPUs
        (:meth:`nova_perfvm.policy.VMClass.of_size`)
    """

    policy: Policy
    vm_class: Class
    request: RequestFacts
    host: HostFacts


RequestCheck = Callable[[RequestCase[Any]], Iterable[Reason]]
HostCheck = Callable[[HostCase[Any]], Reason | None]

# VMs of a pinned class, of a class that shares CPUs, and of no declared class.
Kind = Literal["pinned", "shared", "classless"]
KINDS: Final[tuple[Kind, ...]] = ("pinned", "shared", "classless")
# Hosts that the policy does not manage, managed hosts without labels, and hosts that
# aggregates reserve for classes (labels).
State = Literal["unmanaged", "managed", "labelled"]
STATES: Final[tuple[State, ...]] = ("unmanaged", "managed", "labelled")


class Refusal(NamedTuple):
    """One reason for which a rule refuses.

    :ivar code: dotted, stable, never reused; its first word names the thing to
        change: ``request``, ``flavor`` or ``host``
    :ivar meaning: the explanation in the documentation
    :ivar advice: the remedy in the documentation; ``none`` and the cause, where nothing
        can be done
    :ivar words: makes the message from the figures; None to use ``meaning``
    :ivar audit: the audit's code for a running server that breaks the rule; empty for
        rules that the audit does not ask, such as those about other VMs on the host
    :ivar remedy: the action that the audit proposes for such a server
    """

    code: str
    meaning: str
    advice: str
    words: Callable[[dict[str, Any]], str] | None = None
    audit: str = ""
    remedy: Literal["resize", "migrate", "rebuild"] = "resize"

    def because(self, **figures: Any) -> Reason:
        """Return the reason with this code and these figures."""
        return Reason(self.code, figures)


class RequestRule(NamedTuple):
    """A rule about a request alone.

    :ivar order: position among the rules, the lowest first; reasons are listed so
    :ivar check: yields at most one reason for each of ``refusals``
    :ivar claimed: whether the rule applies only to flavors that name ("claim") a class;
        unlike ``RequestFacts.claimed``, which concerns Placement
    :ivar image: whether a new image alone can break the rule, so that a rebuild has to
        be checked
    """

    order: int
    check: RequestCheck
    refusals: tuple[Refusal, ...]
    claimed: bool = True
    image: bool = False


class HostRule(NamedTuple):
    """A rule about a request on one host.

    :ivar order: position among the rules, the lowest first; the first refusal counts
    :ivar check: returns the reason to refuse, or None.  It runs once per host in
        nova-scheduler's inner loop, so it must not allocate objects for a host that
        it lets pass
    :ivar hosts: states of the hosts that the rule applies to
    :ivar vms: kinds of the VMs that the rule applies to
    """

    order: int
    check: HostCheck
    refusals: tuple[Refusal, ...]
    hosts: tuple[State, ...] = ("managed", "labelled")
    vms: tuple[Kind, ...] = KINDS


Rule = TypeVar("Rule", RequestRule, HostRule)


def rules_of(package: ModuleType, kind: type[Rule]) -> tuple[Rule, ...]:
    """Import the files of a package and return their rules, sorted by ``order``.

    :raises TypeError: a file's ``RULE`` has another type
    """
    found: list[Rule] = []
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        rule = importlib.import_module(info.name).RULE
        if not isinstance(rule, kind):
            raise TypeError(f"{info.name}.RULE: expected a {kind.__name__}")
        found.append(rule)
    return tuple(sorted(found, key=lambda rule: rule.order))
