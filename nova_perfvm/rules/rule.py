# SPDX-License-Identifier: Apache-2.0
"""What a file of :mod:`nova_perfvm.rules` declares: one rule.

A rule is a check, and the refusals that it has.  Each file of the packages
``request`` and ``host`` has one, called ``RULE``; it is found there.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from nova_perfvm.facts import HostFacts, Reason, RequestFacts
from nova_perfvm.policy import Policy, VMClass

# The class of a request, or None where a rule is about VMs of none, too.
Class = TypeVar("Class", bound=VMClass | None)


class RequestCase(NamedTuple, Generic[Class]):
    """What a rule about a request alone is asked."""

    policy: Policy
    vm_class: Class
    request: RequestFacts


class HostCase(NamedTuple, Generic[Class]):
    """What a rule about one host is asked.

    :ivar vm_class: if pinned, as it is for VMs of the request's size
    """

    policy: Policy
    vm_class: Class
    request: RequestFacts
    host: HostFacts


RequestCheck = Callable[[RequestCase[Any]], Iterable[Reason]]
HostCheck = Callable[[HostCase[Any]], Reason | None]

# VMs of a class that owns CPUs, of one that shares them, and pinned VMs of none.
Kind = Literal["pinned", "shared", "classless"]
KINDS: Final[tuple[Kind, ...]] = ("pinned", "shared", "classless")
# Hosts that the policy leaves alone, those that it manages, and of these the ones
# that aggregates reserve for classes.
State = Literal["unmanaged", "managed", "labelled"]
STATES: Final[tuple[State, ...]] = ("unmanaged", "managed", "labelled")


class Refusal(NamedTuple):
    """One of the reasons for which a rule refuses.

    :ivar code: dotted, stable, never reused; its first word says what has to
        change: the request as a whole, the flavor, or the host
    :ivar meaning: what it means, as the documentation has it
    :ivar advice: what to do about it, likewise; ``none`` and why, if nothing
    :ivar words: one sentence of the reason's figures; None for its meaning
    :ivar audit: the audit's code for a server that runs against it; empty where
        the audit looks at what servers do to each other instead
    :ivar remedy: what the audit proposes for such a server
    """

    code: str
    meaning: str
    advice: str
    words: Callable[[dict[str, Any]], str] | None = None
    audit: str = ""
    remedy: Literal["resize", "migrate", "rebuild"] = "resize"

    def because(self, **figures: Any) -> Reason:
        """Return it as the reason of a refusal, with its figures."""
        return Reason(self.code, figures)


class RequestRule(NamedTuple):
    """A rule about a request alone: whether it is of the class that it claims.

    :ivar order: place among the rules: of all that is wrong, what is found first
        is listed first
    :ivar check: yields all that the rule has against a request
    :ivar claimed: whether it is about requests only whose flavor names a class
    :ivar image: whether an image alone can break it, as a rebuild's can
    """

    order: int
    check: RequestCheck
    refusals: tuple[Refusal, ...]
    claimed: bool = True
    image: bool = False


class HostRule(NamedTuple):
    """A rule about one host, which says whether a request may come there.

    :ivar order: place among the rules: the first that refuses is the one to act on
    :ivar check: returns what the rule has against a host, or None.  It runs once
        per host in nova-scheduler's inner loop: where it lets pass, let it make
        nothing
    :ivar hosts: which it is about
    :ivar vms: which it is about
    """

    order: int
    check: HostCheck
    refusals: tuple[Refusal, ...]
    hosts: tuple[State, ...] = ("managed", "labelled")
    vms: tuple[Kind, ...] = KINDS


Rule = TypeVar("Rule", RequestRule, HostRule)


def rules_of(package: ModuleType, kind: type[Rule]) -> tuple[Rule, ...]:
    """Return the rules of the files of a package, in their order."""
    found: list[Rule] = []
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        rule = importlib.import_module(info.name).RULE
        if not isinstance(rule, kind):
            raise TypeError(f"{info.name}.RULE: expected a {kind.__name__}")
        found.append(rule)
    return tuple(sorted(found, key=lambda rule: rule.order))
