# SPDX-License-Identifier: Apache-2.0
"""``nova-perfvm-status upgrade check``: whether Nova still has what we rest on.

Run on a controller, with its nova.conf, before and after an upgrade of Nova or
of this package.  It starts nothing and asks no service.
"""

from __future__ import annotations

import importlib.metadata
import sys
from typing import Final

from nova import conf as nova_conf
from oslo_upgradecheck import upgradecheck
from oslo_upgradecheck.upgradecheck import Code, Result
from packaging.version import Version

from nova_perfvm import conf, findings
from nova_perfvm.exceptions import PolicyError
from nova_perfvm.generate import options
from nova_perfvm.policy import Policy, advice, loader
from nova_perfvm.scheduler import numa_filter

_SUCCESS: Final = Result(Code.SUCCESS)

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


def _for_elastic_hosts() -> bool:
    """Return whether the policy can be read, and is for elastic hosts."""
    try:
        return _policy().placement == "units"
    except PolicyError:
        return False


def _warning(code: str, text: str) -> Result:
    """Return a warning, or a success that says so where the policy accepts it."""
    try:
        accepted = code in _policy().accept
    except PolicyError:
        accepted = False
    if accepted:
        return Result(Code.SUCCESS, f"{code}: {text} ({findings.ACCEPTED})")
    return Result(Code.WARNING, f"{code}: {text}")


class Checks(upgradecheck.UpgradeCommands):  # type: ignore[misc]
    """The checks, in the order of what rests on what."""

    def check_policy(self) -> Result:
        """Return whether nova-scheduler would start with the policy file."""
        try:
            notes = list(advice(_policy()))
        except PolicyError as exc:
            return Result(Code.FAILURE, str(exc))
        return Result(Code.SUCCESS, "; ".join(map(str, notes)) or None)

    def check_filters(self) -> Result:
        """Return whether nova.conf loads and enables the filter, in a good order."""
        group = nova_conf.CONF.filter_scheduler
        enabled = list(group.enabled_filters)
        available = options.AVAILABLE_FILTERS
        missing = set(available.values) - set(group.available_filters)
        if options.FILTER not in enabled:
            return Result(
                Code.WARNING,
                f"{options.FILTER} is not in {options.ENABLED_FILTERS}: only Placement "
                "enforces the policy",
            )
        if missing:
            return Result(
                Code.FAILURE,
                f"{available} lacks {' and '.join(sorted(missing))}: add a line for "
                "each",
            )
        missing = options.missing_filters(enabled)
        if missing or options.costly_first(enabled):
            return _warning(
                findings.FILTER_MISSING if missing else findings.FILTER_ORDER,
                f"{options.ENABLED_FILTERS} needs {options.NUMA_FILTER} behind "
                f"{options.FILTER}",
            )
        twice = options.twice_judged(enabled)
        if twice:
            return _warning(findings.JUDGED_TWICE, twice)
        ours = numa_filter.PerfVMNUMATopologyFilter
        if options.NUMA_FILTER in enabled and not numa_filter.is_known(
            ours.host_passes
        ):
            return _warning(
                findings.COSTLY_FILTER,
                f"the {options.NOVAS_NUMA_FILTER} of this Nova is not the one that "
                f"{options.NUMA_FILTER} replaces: it runs, and costs as much",
            )
        # No fault, but worth a line.
        return Result(Code.SUCCESS, options.cheaper(enabled))

    def check_mode(self) -> Result:
        """Return whether the filter and the weigher decide, or only watch."""
        conf.register_opts(nova_conf.CONF)
        try:
            mode = nova_conf.CONF.perfvm.mode
        except ValueError as exc:
            return Result(Code.FAILURE, str(exc))
        if mode == conf.OBSERVE:
            return Result(
                Code.WARNING,
                f"[perfvm]mode is {mode}: {options.FILTER} refuses nothing, and only "
                f"Placement holds the policy; {conf.ENFORCE} turns it on",
            )
        return _SUCCESS

    def check_rebuild_hint(self) -> Result:
        """Return whether a user can make Nova claim nothing for a server."""
        installed = importlib.metadata.version("nova")
        needed = release_that_drops_hints(installed)
        if needed is None:
            return _SUCCESS
        return Result(
            Code.FAILURE,
            f"Nova {installed} takes the scheduler hint _nova_check_type from users "
            "(CVE-2026-46448) and then claims nothing in Placement for their server. "
            "PerfVMFilter refuses such requests on the policy's hosts, other hosts "
            f"take them: upgrade Nova to {needed}, or to a package of your "
            "distributor with that fix",
        )

    def check_fallback_query(self) -> Result:
        """Return whether pinned VMs reach the hosts that the policy means."""
        try:
            policy = _policy()
        except PolicyError:
            return Result(Code.WARNING, "not checked: the policy cannot be read")
        setting = options.fallback_query(policy)
        if setting.option in nova_conf.CONF.workarounds:
            if policy.placement == "units":
                return self._compared(setting)
            fault = self._fault(setting)
            return _warning(findings.FALLBACK_QUERY, fault) if fault else _SUCCESS
        if policy.placement != "units":
            return _SUCCESS
        return Result(
            Code.FAILURE,
            f"this Nova has no {setting} any more: elastic hosts (placement: units) "
            "take no pinned VMs; move to placement: slots",
        )

    def _fault(self, setting: options.Setting) -> str | None:
        """Return what is wrong with an option that this Nova has, and the remedy."""
        fault = setting.fault(str(nova_conf.CONF[setting.section][setting.option]))
        return None if fault is None else f"{fault}; {setting.remedy}"

    def _compared(self, setting: options.Setting) -> Result:
        """Return a failure if an option is not what it should be."""
        fault = self._fault(setting)
        return _SUCCESS if fault is None else Result(Code.FAILURE, fault)

    def check_isolated_aggregates(self) -> Result:
        """Return whether VMs without units are kept off elastic hosts."""
        if not _for_elastic_hosts():
            return _SUCCESS
        return self._compared(options.ISOLATED_AGGREGATES)

    def check_pin_set(self) -> Result:
        """Return whether housekeeping CPUs of elastic hosts can still be declared."""
        if _for_elastic_hosts() and options.PIN_SET.option not in nova_conf.CONF:
            return _warning(
                findings.PIN_SET,
                f"this Nova has no {options.PIN_SET} any more: elastic hosts cannot "
                "keep CPUs for themselves",
            )
        return _SUCCESS

    _upgrade_checks = (
        ("Policy", check_policy),
        ("Filters", check_filters),
        ("Mode", check_mode),
        ("Users' scheduler hints", check_rebuild_hint),
        ("Fallback query", check_fallback_query),
        ("Isolated aggregates", check_isolated_aggregates),
        (options.PIN_SET.option, check_pin_set),
    )


def main(argv: list[str] | None = None) -> int:
    """Run ``nova-perfvm-status``; the worst check's code is the exit code."""
    code: int = upgradecheck.main(
        nova_conf.CONF,
        project="nova",
        upgrade_command=Checks(),
        argv=sys.argv[1:] if argv is None else argv,
    )
    return code
