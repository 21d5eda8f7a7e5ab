# SPDX-License-Identifier: Apache-2.0
"""``nova-perfvm-status upgrade check``: whether Nova still has what we rest on.

Run on a controller, with its nova.conf, before and after an upgrade of Nova or
of this package.  It starts nothing and asks no service.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterable, Iterator
from typing import Final

from nova import conf as nova_conf
from oslo_upgradecheck import upgradecheck
from oslo_upgradecheck.upgradecheck import Code, Result
from packaging.version import Version

from nova_perfvm import conf
from nova_perfvm import findings as codes
from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.findings import Finding, Level, worst
from nova_perfvm.generate import options
from nova_perfvm.placement.schemes import names_of, scheme_of
from nova_perfvm.policy import Policy, advice, loader
from nova_perfvm.scheduler import numa_filter

_CODES: Final = {
    Level.UNKNOWN: Code.WARNING,
    Level.WARNING: Code.WARNING,
    Level.FAILURE: Code.FAILURE,
}

# The first release of each series with Nova's fix of CVE-2026-46448
# (OSSA-2026-022).  No older series has it, every later one does.
_HINTS_DROPPED = ("31.3.1", "32.2.1", "33.0.2")


def release_that_drops_hints(installed: str) -> str | None:
    """Return the release of Nova that users' hints make necessary.

    None if the installed one has the fix already.
    """
    version = Version(installed)
    for release in _HINTS_DROPPED:
        if version.major <= Version(release).major:
            return release if version < Version(release) else None
    return None


def _policy() -> Policy:
    return loader.load(conf.policy_file(nova_conf.CONF))


def _policy_or_none() -> Policy | None:
    try:
        return _policy()
    except DocumentError:
        return None


def _result(found: Iterable[Finding]) -> Result:
    """Return findings as the result of a check, as notes what the policy accepts."""
    policy = _policy_or_none()
    judged = [one.judged_with(policy.accept if policy else ()) for one in found]
    details = "; ".join(
        f"{one.code}: {one.observed}" + (f"; {one.remedy}" if one.remedy else "")
        for one in judged
    )
    return Result(_CODES.get(worst(judged), Code.SUCCESS), details or None)


class Checks(upgradecheck.UpgradeCommands):  # type: ignore[misc]
    """The checks, in the order of what rests on what."""

    def check_policy(self) -> Result:
        """Return whether nova-scheduler would start with the policy file."""
        try:
            policy = _policy()
        except DocumentError as exc:
            return Result(Code.FAILURE, str(exc))
        notes = (
            Finding.of(code, "policy", str(problem)) for code, problem in advice(policy)
        )
        return _result(notes)

    def check_filters(self) -> Result:
        """Return whether nova.conf loads and enables the filter, in a good order."""
        return _result(_filters())

    def check_mode(self) -> Result:
        """Return whether the filter and the weigher decide, or only watch."""
        conf.register_opts(nova_conf.CONF)
        try:
            mode = nova_conf.CONF.perfvm.mode
        except ValueError as exc:
            return Result(Code.FAILURE, str(exc))
        if mode != conf.OBSERVE:
            return _result(())
        words = (
            f"[perfvm]mode is {mode}: {options.FILTER} refuses nothing, and only "
            f"Placement holds the policy; {conf.ENFORCE} turns it on"
        )
        return _result([_of_nova(codes.MODE_OBSERVE, words)])

    def check_rebuild_hint(self) -> Result:
        """Return whether a user can make Nova claim nothing for a server."""
        installed = importlib.metadata.version("nova")
        needed = release_that_drops_hints(installed)
        if needed is None:
            return _result(())
        words = (
            f"Nova {installed} takes the scheduler hint _nova_check_type from users "
            "(CVE-2026-46448) and then claims nothing in Placement for their server. "
            "PerfVMFilter refuses such requests on the policy's hosts, other hosts "
            f"take them: upgrade Nova to {needed}, or to a package of your "
            "distributor with that fix"
        )
        return _result([_of_nova(codes.HINTS_TAKEN, words)])

    def check_fallback_query(self) -> Result:
        """Return whether pinned VMs reach the hosts that the policy means."""
        policy = _policy_or_none()
        if policy is None:
            return Result(Code.WARNING, "not checked: the policy cannot be read")
        setting = options.fallback_query(policy)
        if setting.option in nova_conf.CONF.workarounds:
            found = _set(setting, codes.FALLBACK_QUERY)
            if scheme_of(policy).enrolls:
                # Pinned VMs come to no elastic host without it.
                found = (one._replace(level=Level.FAILURE) for one in found)
            return _result(found)
        if not scheme_of(policy).enrolls:
            return _result(())
        words = (
            f"this Nova has no {setting} any more: elastic hosts take no pinned VMs; "
            f"move to placement: {names_of(lambda scheme: scheme.offers_slots)}"
        )
        return _result([_of_nova(codes.FALLBACK_GONE, words)])

    def check_isolated_aggregates(self) -> Result:
        """Return whether VMs without units are kept off elastic hosts."""
        if not _for_elastic_hosts():
            return _result(())
        return _result(_set(options.ISOLATED_AGGREGATES, codes.ISOLATION))

    def check_pin_set(self) -> Result:
        """Return whether housekeeping CPUs of elastic hosts can still be declared."""
        if not _for_elastic_hosts() or options.PIN_SET.option in nova_conf.CONF:
            return _result(())
        words = (
            f"this Nova has no {options.PIN_SET} any more: elastic hosts cannot keep "
            "CPUs for themselves"
        )
        return _result([_of_nova(codes.PIN_SET, words)])

    _upgrade_checks = (
        ("Policy", check_policy),
        ("Filters", check_filters),
        ("Mode", check_mode),
        ("Users' scheduler hints", check_rebuild_hint),
        ("Fallback query", check_fallback_query),
        ("Isolated aggregates", check_isolated_aggregates),
        (options.PIN_SET.option, check_pin_set),
    )


def _for_elastic_hosts() -> bool:
    """Return whether the policy can be read, and is for elastic hosts."""
    policy = _policy_or_none()
    return policy is not None and scheme_of(policy).enrolls


def _of_nova(code: str, words: str) -> Finding:
    return Finding.of(code, "nova.conf", words)


def _filters() -> Iterator[Finding]:
    """Judge the filters that nova.conf enables, and whether this Nova has them."""
    group = nova_conf.CONF.filter_scheduler
    enabled = list(group.enabled_filters)
    yield from options.judge_filters(enabled)
    available = options.AVAILABLE_FILTERS
    missing = set(available.values) - set(group.available_filters)
    if missing and options.FILTER in enabled:
        yield _of_nova(
            codes.FILTERS_UNAVAILABLE,
            f"{available} lacks {' and '.join(sorted(missing))}: add a line for each",
        )
    known = numa_filter.is_known(numa_filter.PerfVMNUMATopologyFilter.host_passes)
    if options.NUMA_FILTER in enabled and not known:
        yield _of_nova(
            codes.COSTLY_FILTER,
            f"the {options.NOVAS_NUMA_FILTER} of this Nova is not the one that "
            f"{options.NUMA_FILTER} replaces: it runs, and costs as much",
        )


def _set(setting: options.Setting, code: str) -> Iterator[Finding]:
    """Judge an option that this Nova has."""
    fault = setting.fault(str(nova_conf.CONF[setting.section][setting.option]))
    if fault:
        yield Finding.of(code, "nova.conf", fault, setting.remedy)


def main(argv: list[str] | None = None) -> int:
    """Run ``nova-perfvm-status``; the worst check's code is the exit code."""
    code: int = upgradecheck.main(
        nova_conf.CONF,
        project="nova",
        upgrade_command=Checks(),
        argv=sys.argv[1:] if argv is None else argv,
    )
    return code
